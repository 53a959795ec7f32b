/* One multiply and one add; y is read and written, x is read: 3 accesses of 4 bytes, all stride 1.
   The guard goes around the whole body: no divergence.
   coal = 3*1.0/3
   ai = log1p(2/12)
   occ = 1.0        # 256
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(3)
   ops = log1p(2)
*/
#include <cuda_runtime.h>
__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t s) {
  saxpy<<<(n + 255) / 256, 256, 0, s>>>(n, a, x, y);
  return cudaGetLastError();
}
