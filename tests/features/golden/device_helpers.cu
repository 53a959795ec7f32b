/* Helpers are walked where they are called. at(r, c, ld) only computes an address. mix() does a multiply and two adds per
   call (the subtraction is an add): 3 operations, called twice: 6. Loads a[..] and b[..], store c: stride 1.
   coal = 3*1.0/3
   ai = log1p(6/12)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(3)
   ops = log1p(6)
*/
__device__ __forceinline__ int at(int r, int c, int ld) { return r * ld + c; }
__device__ float mix(float u, float v, float w) { return u + w * (v - u); }
__device__ float fetch(const float *p, int r, int c, int ld) { return p[at(r, c, ld)]; }
__global__ void blend(const float *a, const float *b, float *c, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  if (x < w && y < h) c[at(y, x, w)] = mix(mix(fetch(a, y, x, w), 0.5f, 0.1f), fetch(b, y, x, w), 0.2f);
}
extern "C" int blend_device(const float *a, const float *b, float *c, int w, int h, cudaStream_t s) {
  dim3 grid((w + 255) / 256, h);
  blend<<<grid, 256, 0, s>>>(a, b, c, w, h);
  return cudaGetLastError();
}
