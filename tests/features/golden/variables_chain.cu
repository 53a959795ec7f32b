/* The index goes through a chain of variables: tid, base, pos; off is 2*pos: stride 2 -> 0.4. y[pos] stride 1.
   lane-like division: x[pos / 2] is 0 or 1 apart: the more frequent distance within a warp of 31 steps is 0 (16 times)
   -> 0.2. One addition of floats.
   coal = (0.4 + 0.2 + 1.0)/3
   ai = log1p(1/12)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 160
   gmem = log1p(3)
   ops = log1p(1)
*/
constexpr int kThreads = 5 * 32;
__global__ void __launch_bounds__(kThreads) chain(const float *x, float *y) {
  const unsigned tid = threadIdx.x;
  const unsigned base = blockIdx.x * kThreads;
  unsigned pos = base;
  pos += tid;
  const unsigned off = pos << 1;
  y[pos] = x[off] + x[pos / 2];
}
extern "C" int chain_device(const float *x, float *y, int n, cudaStream_t s) {
  dim3 block;
  block.x = kThreads;
  dim3 grid = dim3(n / kThreads);
  chain<<<grid, block, 0, s>>>(x, y);
  return cudaGetLastError();
}
