/* The block is an argument: only known at run time -> occ 0, tpb 0 (gap). Load, store, one multiplication.
   coal = 2*1.0/2
   ai = log1p(1/8)
   occ = 0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 0
   gmem = log1p(2)
   ops = log1p(1)
   missing occ tpb
*/
__global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
extern "C" int f_device(const float *x, float *y, int n, int block, cudaStream_t s) {
  k<<<(n + block - 1) / block, block, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
