/* 32 threads -> -0.5. A loop over j with a[j]: the same for all threads, stride 0 -> 0.2, weight 10; store 1.0.
   fmaf counts 2, in the loop: 20. x is read once before the loop (stride 1).
   coal = (1*1.0 + 10*0.2 + 1*1.0)/12
   ai = log1p(20/48)
   occ = -0.5
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 32
   gmem = log1p(12)
   ops = log1p(20)
*/
__global__ void poly(const float *x, const float *a, float *y, int n, int m) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= n) return;
  float v = x[i], r = 0.0f;
  for (int j = 0; j < m; ++j) r = fmaf(r, v, a[j]);
  y[i] = r;
}
extern "C" int poly_device(const float *x, const float *a, float *y, int n, int m, cudaStream_t s) {
  poly<<<(n + 31) / 32, 32, 0, s>>>(x, a, y, n, m);
  return cudaGetLastError();
}
