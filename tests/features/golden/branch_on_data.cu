/* `v > 0` depends on loaded data of the thread: div 1, not a bounds guard. Both sides count: two stores of y (stride 1).
   The condition has a float comparison, no operation; one side multiplies: 1. A switch on threadIdx.x % 4: div 1,
   one store in each of two cases.
   coal = 5*1.0/5
   ai = log1p(1/20)
   occ = 1.0
   div = 1 + 1
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(5)
   ops = log1p(1)
*/
__global__ void leaky(const float *x, float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v > 0.0f) {
    y[i] = v;
  } else {
    y[i] = 0.01f * v;
  }
  switch (threadIdx.x % 4) {
    case 0:
      z[i] = 1.0f;
      break;
    default:
      z[i] = 2.0f;
  }
}
extern "C" int leaky_device(const float *x, float *y, float *z, int n, cudaStream_t s) {
  leaky<<<(n + 255) / 256, 256, 0, s>>>(x, y, z, n);
  return cudaGetLastError();
}
