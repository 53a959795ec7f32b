__global__ void sums(const float *a, float *out, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float t = 0.0f;
  for (int c = 0; c < cols; ++c)
    t += a[r * cols + c];  // FLAW
  out[r] = t;
}
extern "C" int sums_device(const float *a, float *out, int rows, int cols, cudaStream_t s) {
  sums<<<(rows + 255) / 256, 256, 0, s>>>(a, out, rows, cols);
  return cudaGetLastError();
}
