/* Clamped indices: within a warp nearly all neighbours are 1 apart -> 1.0 for all three loads and the store.
   Two additions and one multiplication; the clamps are address arithmetic.
   coal = 4*1.0/4
   ai = log1p(3/16)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(4)
   ops = log1p(3)
*/
__global__ void blur(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int left = max(i - 1, 0), right = min(i + 1, n - 1);
  y[i] = 0.33f * (x[left] + x[i] + x[right]);
}
extern "C" int blur_device(const float *x, float *y, int n, cudaStream_t s) {
  blur<<<(n + 255) / 256, 256, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
