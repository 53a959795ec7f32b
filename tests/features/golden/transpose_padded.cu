/* Block 32 x 8 = 256. A tile with a padded row. Two loops (weight 10), each with a branch on the bounds inside the
   loop: one depends on x and y: 10; the other too: 10. Load stride 1, store stride 1 (threadIdx.x contiguous in both).
   One barrier outside of loops. x and y are address variables, so that no addition counts.
   coal = 20*1.0/20
   ai = log1p(0/80)
   occ = 1.0
   div = 10 + 10
   xfer = 0
   atomics = 0
   sync = 1
   kernels = 1
   tpb = 256
   gmem = log1p(20)
   ops = log1p(0)
   extended bank_conflict = 1
*/
__global__ void transpose(const float *in, float *out, int w, int h) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" int transpose_device(const float *in, float *out, int w, int h, cudaStream_t s) {
  transpose<<<dim3((w + 31) / 32, (h + 31) / 32), dim3(32, 8), 0, s>>>(in, out, w, h);
  return cudaGetLastError();
}
