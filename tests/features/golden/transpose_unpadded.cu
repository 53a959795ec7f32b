/* As transpose_padded, without the padding and without bounds (sizes are multiples of 32): no divergence.
   The eleven are blind to the bank conflict; the extended set is not: storing a row of the tile is free (1 pass), reading
   a column of it falls on one bank (32 passes), both of weight 10.
   coal = 20*1.0/20
   ai = log1p(0/80)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 1
   kernels = 1
   tpb = 256
   gmem = log1p(20)
   ops = log1p(0)
   extended bank_conflict = (10*1 + 10*32)/20
*/
__global__ void transpose(const float *in, float *out, int w, int h) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" int transpose_device(const float *in, float *out, int w, int h, cudaStream_t s) {
  transpose<<<dim3(w / 32, h / 32), dim3(32, 8), 0, s>>>(in, out, w, h);
  return cudaGetLastError();
}
