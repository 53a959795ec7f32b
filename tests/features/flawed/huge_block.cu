__global__ void add(const float *x, const float *y, float *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" int add_device(const float *x, const float *y, float *z, int n, cudaStream_t s) {
  dim3 block(1024);
  dim3 grid((n + 1023) / 1024);
  add<<<grid, block, 0, s>>>(x, y, z, n);  // FLAW
  return cudaGetLastError();
}
