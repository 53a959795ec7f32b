/* The index and the loop come from macros. x[IDX] stride 1 in the loop: weight 10, and y weight 1 each for load and store.
   EACH expands to a loop of known length. One addition per round, 10; y += one more: 1.
   Bytes 40 + 8.
   coal = 12*1.0/12
   ai = log1p(11/48)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 128
   gmem = log1p(12)
   ops = log1p(11)
*/
#define THREADS (64 * 2)
#define TID (blockIdx.x * THREADS + threadIdx.x)
#define EACH(v, count) for (int v = 0; v < (count); ++v)
#define LAUNCH(kernel, n, ...) kernel<<<((n) + THREADS - 1) / THREADS, THREADS>>>(__VA_ARGS__)
__global__ void sum8(const float *x, float *y, int n) {
  if (TID < n) {
    float t = 0.0f;
    EACH(r, 8) t += x[r * n + TID];
    y[TID] += t;
  }
}
extern "C" int sum8_device(const float *x, float *y, int n, cudaStream_t s) {
  LAUNCH(sum8, n, x, y, n);
  return cudaGetLastError();
}
