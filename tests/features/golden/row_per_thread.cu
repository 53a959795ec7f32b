/* A thread walks a row: a[row*cols + j] has stride cols, not a number -> -0.5, in a loop, weight 10.
   The store out[row] is stride 1, weight 1. One addition in the loop: 10. Bytes 4*10 + 4.
   coal = (10*-0.5 + 1*1.0)/11
   ai = log1p(10/44)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 128
   gmem = log1p(11)
   ops = log1p(10)
*/
__global__ void row_sums(const float *a, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int j = 0; j < cols; ++j) sum += a[row * cols + j];
    out[row] = sum;
  }
}
extern "C" int rows_device(const float *a, float *out, int rows, int cols, cudaStream_t s) {
  row_sums<<<(rows + 127) / 128, 128, 0, s>>>(a, out, rows, cols);
  return cudaGetLastError();
}
