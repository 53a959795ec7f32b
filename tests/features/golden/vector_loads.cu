/* float4 is aligned to its 16 bytes: load and store move 16 bytes each, stride 1. Four multiplications.
   coal = 2*1.0/2
   ai = log1p(4/32)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(4)
*/
__global__ void scale(const float *x, float *y, float a, int quarter) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quarter) return;
  float4 v = reinterpret_cast<const float4 *>(x)[i];
  v.x *= a;
  v.y *= a;
  v.z *= a;
  v.w *= a;
  reinterpret_cast<float4 *>(y)[i] = v;
}
extern "C" int scale_device(const float *x, float *y, float a, int n, cudaStream_t s) {
  scale<<<(n / 4 + 255) / 256, 256, 0, s>>>(x, y, a, n / 4);
  return cudaGetLastError();
}
