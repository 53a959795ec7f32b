__global__ void transpose(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) {
    float v = in[y * w + x];
    out[x * h + y] = v;  // FLAW
  }
}
extern "C" int transpose_device(const float *in, float *out, int w, int h, cudaStream_t s) {
  dim3 block(32, 8);
  transpose<<<dim3((w + 31) / 32, (h + 7) / 8), block, 0, s>>>(in, out, w, h);
  return cudaGetLastError();
}
