__global__ void total(const float *x, float *sum, int n) {
  int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    atomicAdd(sum, x[i]);  // FLAW
}
extern "C" int total_device(const float *x, float *sum, int n, cudaStream_t s) {
  total<<<1056, 256, 0, s>>>(x, sum, n);
  return cudaGetLastError();
}
