/* sqrtf, expf, fmaxf: 1 each; the multiplication, the division and the addition: 1 each; unary minus: 0. 6 operations.
   coal = 2*1.0/2
   ai = log1p(6/8)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(6)
*/
#include <cmath>
__global__ void act(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    y[i] = fmaxf(sqrtf(v * v), 1.0f / (1.0f + expf(-v)));
  }
}
extern "C" int act_device(const float *x, float *y, int n, cudaStream_t s) {
  act<<<(n + 255) / 256, 256, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
