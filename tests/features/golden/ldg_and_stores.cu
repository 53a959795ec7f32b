/* __ldg(&x[i]) is a load of stride 1; __ldg(x + 2*i) one of stride 2 -> 0.4; __stcs a store of stride 1.
   One addition (of floats).
   coal = (1.0 + 0.4 + 1.0)/3
   ai = log1p(1/12)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(3)
   ops = log1p(1)
*/
__global__ void k(const float *__restrict__ x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) __stcs(&y[i], __ldg(&x[i]) + __ldg(x + 2 * i));
}
extern "C" int f_device(const float *x, float *y, int n, cudaStream_t s) {
  k<<<(n + 255) / 256, 256, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
