/* Two kernels, blocks of 128 (1.0) and 1024 (0.1): occ is their mean, tpb their maximum.
   square: load and store, stride 1, one multiplication. shift: load stride 1, store y[4*i] stride 4 -> 0.1, one addition.
   coal = (1.0 + 1.0 + 1.0 + 0.1)/4
   ai = log1p(2/16)
   occ = (1.0 + 0.1)/2
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 2
   tpb = 1024
   gmem = log1p(4)
   ops = log1p(2)
*/
__global__ void square(const float *x, float *t, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    t[i] = v * v;
  }
}
__global__ void shift(const float *t, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[4 * i] = t[i] + 1.0f;
}
extern "C" int f_device(const float *x, float *y, float *t, int n, cudaStream_t s) {
  square<<<(n + 127) / 128, 128, 0, s>>>(x, t, n);
  shift<<<(n + 1023) / 1024, 1024, 0, s>>>(t, y, n);
  return cudaGetLastError();
}
