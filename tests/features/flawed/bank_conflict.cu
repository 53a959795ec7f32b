__global__ void transpose(const float *in, float *out, int w, int h) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];  // FLAW
}
extern "C" int transpose_device(const float *in, float *out, int w, int h, cudaStream_t s) {
  transpose<<<dim3(w / 32, h / 32), dim3(32, 8), 0, s>>>(in, out, w, h);
  return cudaGetLastError();
}
