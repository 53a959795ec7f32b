#include <cuda_runtime.h>
__global__ void step(float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = 0.5f * (a[i] + b[i]);
}
extern "C" void iterate(float *x, const float *b, int n, int steps) {
  float *da, *db;
  cudaMalloc(&da, n * sizeof(float));
  cudaMalloc(&db, n * sizeof(float));
  cudaMemcpy(da, x, n * sizeof(float), cudaMemcpyHostToDevice);
  for (int t = 0; t < steps; ++t) {
    cudaMemcpy(db, b, n * sizeof(float), cudaMemcpyHostToDevice);  // FLAW
    step<<<(n + 255) / 256, 256>>>(da, db, n);
  }
  cudaMemcpy(x, da, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(da);
  cudaFree(db);
}
