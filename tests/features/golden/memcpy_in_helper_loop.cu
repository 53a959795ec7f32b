/* The copy sits in a helper that a loop calls: x10. The helper that nobody calls does not count.
   fill stores only: one access, stride 1.
   coal = 1.0
   ai = log1p(0/4)
   occ = 1.0
   div = 0
   xfer = 10
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 128
   gmem = log1p(1)
   ops = log1p(0)
*/
__global__ void fill(float *x, float v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = v;
}
static void fetch(float *to, const float *from, int n) {
  cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyDeviceToHost);
}
static void unused(float *to, const float *from, int n) { cudaMemcpy(to, from, n, cudaMemcpyDeviceToHost); }
static void launch(float *x, float v, int n, int threads) { fill<<<(n + threads - 1) / threads, threads>>>(x, v, n); }
extern "C" void repeat(float *host, float *x, int n, int times) {
  int t = 0;
  launch(x, 1.0f, n, 128);
  while (t < times) {
    fetch(host, x, n);
    t++;
  }
}
