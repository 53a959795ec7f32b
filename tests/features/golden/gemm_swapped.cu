/* As naive_gemm, but threadIdx.x runs along the rows: a[row*n+k] and c[row*n+col] have stride n -> -0.5,
   b[k*n+col] depends on threadIdx.y only: stride 0 -> 0.2. Block 32 x 8 = 256.
   coal = (10*-0.5 + 10*0.2 + 1*-0.5)/21
   ai = log1p(20/84)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(21)
   ops = log1p(20)
*/
__global__ void gemm(int n, const float *a, const float *b, float *c) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || col >= n) return;
  float acc = 0.0f;
  for (int k = 0; k < n; k++) acc += a[row * n + k] * b[k * n + col];
  c[row * n + col] = acc;
}
extern "C" int gemm_device(int n, const float *a, const float *b, float *c, cudaStream_t s) {
  gemm<<<dim3((n + 31) / 32, (n + 7) / 8), dim3(32, 8), 0, s>>>(n, a, b, c);
  return cudaGetLastError();
}
