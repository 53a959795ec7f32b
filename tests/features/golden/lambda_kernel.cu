/* A lambda is walked where it is called: two calls, each with a bounds test that depends on the thread (div 1 each, they
   are conditional expressions) and a load of stride 1. The store is stride 1. One addition.
   coal = 3*1.0/3
   ai = log1p(1/12)
   occ = 1.0
   div = 2
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(3)
   ops = log1p(1)
*/
__global__ void edges(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  auto safe = [=](int at) { return at >= 0 && at < n ? x[at] : 0.0f; };
  y[i] = safe(i - 1) + safe(i + 1);
}
extern "C" int edges_device(const float *x, float *y, int n, cudaStream_t s) {
  edges<<<(n + 255) / 256, 256, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
