__global__ void scale(float *x, float a, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= a;
}
extern "C" int scale_device(float *x, float a, int n, cudaStream_t s) {
  if (n <= 0) return cudaSuccess;
  scale<<<1, 256, 0, s>>>(x, a, n);  // FLAW
  return cudaGetLastError();
}
