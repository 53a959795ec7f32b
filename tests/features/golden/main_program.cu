/* A whole program: main is the entry. Two copies outside of loops; block from a variable that is set once.
   x[i] load and store; one multiplication.
   coal = 2*1.0/2
   ai = log1p(1/8)
   occ = 0.4
   div = 0
   xfer = 2
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 512
   gmem = log1p(2)
   ops = log1p(1)
*/
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void twice(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 2;
}
int main() {
  int n = 0;
  if (scanf("%d", &n) != 1) return 1;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) scanf("%d", &host[i]);
  int *x;
  cudaMalloc(&x, n * sizeof(int));
  cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  int threads = 512;
  twice<<<(n + threads - 1) / threads, threads>>>(x, n);
  cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; ++i) printf("%d\n", host[i]);
  return 0;
}
