/* Two loops deep: weight 100. The load x[i*m + j*8 + k] has stride m -> -0.5. The bin is address arithmetic of an atomic.
   One atomic of weight 100; it is not counted among the global accesses. One atomic outside, weight 1.
   coal = 100*-0.5/100
   ai = log1p(0/400)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 100 + 1
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(100)
   ops = log1p(0)
*/
__global__ void hist(const int *x, int *bins, int *seen, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    for (int j = 0; j < m / 8; ++j)
      for (int k = 0; k < 8; ++k) {
        int bin = x[i * m + j * 8 + k] & 255;
        atomicAdd(&bins[bin], 1);
      }
    atomicAdd(seen, 1);
  }
}
extern "C" int hist_device(const int *x, int *bins, int *seen, int n, int m, cudaStream_t s) {
  hist<<<(n + 255) / 256, 256, 0, s>>>(x, bins, seen, n, m);
  return cudaGetLastError();
}
