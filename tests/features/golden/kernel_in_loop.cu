/* A launch inside a host loop is one launch site. Whole-file form: two copies outside, one inside the loop (x10).
   The kernel reads two neighbours (stride 1) and writes: 3 accesses, one addition and one multiplication.
   coal = 3*1.0/3
   ai = log1p(2/12)
   occ = 1.0
   div = 0
   xfer = 1 + 10 + 1
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(3)
   ops = log1p(2)
*/
#include <cuda_runtime.h>
#include <cstdio>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(e)); return; } } while (0)
__global__ void smooth(const float *a, float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) b[i] = 0.5f * (a[i] + a[i + 1]);
}
extern "C" void relax(float *x, int n, int steps) {
  float *a, *b;
  CHECK(cudaMalloc(&a, n * sizeof(float)));
  CHECK(cudaMalloc(&b, n * sizeof(float)));
  CHECK(cudaMemcpy(a, x, n * sizeof(float), cudaMemcpyHostToDevice));
  for (int t = 0; t < steps; ++t) {
    smooth<<<(n + 255) / 256, 256>>>(a, b, n);
    CHECK(cudaMemcpy(a, b, n * sizeof(float), cudaMemcpyDeviceToDevice));
  }
  CHECK(cudaMemcpy(x, a, n * sizeof(float), cudaMemcpyDeviceToHost));
  cudaFree(a);
  cudaFree(b);
}
