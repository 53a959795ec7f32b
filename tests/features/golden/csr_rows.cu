/* A row per thread. ptr[i] is read in the start of the loop (weight 1, stride 1), ptr[i + 1] in its condition (weight 10,
   stride 1); col[j] and val[j] have j from loaded data: indirect -> -0.5, weight 10 each; x[col[j]]: indirect, weight 10.
   The length of the loop differs between threads: div at weight 10. Store weight 1. Multiply and add: 20.
   Weights 1 + 10 + 10 + 10 + 10 + 1 = 42, 4 bytes each.
   coal = (1*1.0 + 10*1.0 + 30*-0.5 + 1*1.0)/42
   ai = log1p(20/168)
   occ = 1.0
   div = 10
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 128
   gmem = log1p(42)
   ops = log1p(20)
*/
__global__ void spmv(const int *ptr, const int *col, const float *val, const float *x, float *y, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  float sum = 0.0f;
  for (int j = ptr[i]; j < ptr[i + 1]; ++j) sum += val[j] * x[col[j]];
  y[i] = sum;
}
extern "C" int spmv_device(const int *ptr, const int *col, const float *val, const float *x, float *y, int rows, cudaStream_t s) {
  spmv<<<(rows + 127) / 128, 128, 0, s>>>(ptr, col, val, x, y, rows);
  return cudaGetLastError();
}
