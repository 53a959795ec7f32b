/* x[2*i]: stride 2 -> 0.4; y[i]: 1.0. One addition.
   coal = (0.4 + 1.0)/2
   ai = log1p(1/8)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(1)
*/
__global__ void k(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[2 * i] + 1.0f;
}
extern "C" int f_device(int n, const float *x, float *y, cudaStream_t s) {
  k<<<(n + 255) / 256, 256, 0, s>>>(n, x, y);
  return cudaGetLastError();
}
