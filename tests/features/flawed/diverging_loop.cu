__global__ void mix(const float *x, float *y, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int k = 0; k < m; ++k) {
    if (threadIdx.x % 2 == 0)  // FLAW
      v = v * 1.01f + 0.5f;
    else
      v = v * 0.99f - 0.5f;
  }
  y[i] = v;
}
extern "C" int mix_device(const float *x, float *y, int n, int m, cudaStream_t s) {
  mix<<<(n + 255) / 256, 256, 0, s>>>(x, y, n, m);
  return cudaGetLastError();
}
