__global__ void scale(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
extern "C" int scale_device(float *x, float a, int n, cudaStream_t s) {
  const int threads = 16;
  const int blocks = (n + threads - 1) / threads;
  scale<<<blocks, threads, 0, s>>>(x, a, n);  // FLAW
  return cudaGetLastError();
}
