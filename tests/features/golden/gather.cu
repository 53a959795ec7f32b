/* idx[i] is stride 1, x[idx[i]] indirect -> -0.5, y[i] stride 1. No arithmetic.
   coal = (1.0 - 0.5 + 1.0)/3
   ai = log1p(0/12)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(3)
   ops = log1p(0)
*/
__global__ void gather(const int *idx, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int from = idx[i];
    y[i] = x[from];
  }
}
extern "C" int gather_device(const int *idx, const float *x, float *y, int n, cudaStream_t s) {
  gather<<<(n + 255) / 256, 256, 0, s>>>(idx, x, y, n);
  return cudaGetLastError();
}
