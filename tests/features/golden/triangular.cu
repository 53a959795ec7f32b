/* `k <= row` with row from the thread: the loop's length differs, div at weight 10. a[row*n+k]: stride n -> -0.5;
   x[k]: stride 0 -> 0.2; store 1.0.
   coal = (10*-0.5 + 10*0.2 + 1.0)/21
   ai = log1p(20/84)
   occ = 0.4
   div = 10
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 96
   gmem = log1p(21)
   ops = log1p(20)
*/
__global__ void lower(const float *a, const float *x, float *y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float sum = 0.0f;
    for (int k = 0; k <= row; k++) sum += a[row * n + k] * x[k];
    y[row] = sum;
  }
}
extern "C" int lower_device(const float *a, const float *x, float *y, int n, cudaStream_t s) {
  lower<<<(n + 95) / 96, 96, 0, s>>>(a, x, y, n);
  return cudaGetLastError();
}
