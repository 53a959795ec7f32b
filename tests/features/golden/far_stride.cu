/* Stride 32: neighbouring threads are 32 apart, more than 4 -> -0.5; the store is stride 5 -> -0.5.
   coal = 2*-0.5/2
   ai = log1p(0/8)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(0)
*/
enum { WIDTH = 32 };
static const int kGap = 5;
__global__ void spread(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i * kGap] = x[i * WIDTH + blockIdx.y];
}
extern "C" int spread_device(const float *x, float *y, int n, cudaStream_t s) {
  spread<<<dim3(n / 256, WIDTH), 256, 0, s>>>(x, y);
  return cudaGetLastError();
}
