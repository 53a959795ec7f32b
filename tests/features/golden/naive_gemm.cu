/* Block 16 x 16 = 256. In the loop (weight 10): a[row*n+k], row from threadIdx.y: stride 0 -> 0.2;
   b[k*n+col]: stride 1 -> 1.0. Outside: store of c, 1.0. A multiply and an add in the loop: 20. Bytes 84.
   coal = (10*0.2 + 10*1.0 + 1*1.0)/21
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
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n) {
    float acc = 0.0f;
    for (int k = 0; k < n; k++) acc += a[row * n + k] * b[k * n + col];
    c[row * n + col] = acc;
  }
}
extern "C" int gemm_device(int n, const float *a, const float *b, float *c, cudaStream_t s) {
  dim3 block(16, 16);
  dim3 grid((n + block.x - 1) / block.x, (n + block.y - 1) / block.y);
  gemm<<<grid, block, 0, s>>>(n, a, b, c);
  return cudaGetLastError();
}
