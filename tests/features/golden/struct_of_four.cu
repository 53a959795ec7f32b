/* A struct of four floats without alignment: p[i].x is stride 4 -> 0.1, twice (x and w); the store is stride 1.
   Bytes: 4 + 4 + 4. One multiplication.
   coal = (0.1 + 0.1 + 1.0)/3
   ai = log1p(1/12)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 192
   gmem = log1p(3)
   ops = log1p(1)
*/
struct Particle { float x, y, z, w; };
__global__ void weigh(const Particle *p, float *out, int n) {
  int i = blockIdx.x * 192 + threadIdx.x;
  if (i < n) out[i] = p[i].x * p[i].w;
}
extern "C" int weigh_device(const Particle *p, float *out, int n, cudaStream_t s) {
  weigh<<<(n + 191) / 192, 192, 0, s>>>(p, out, n);
  return cudaGetLastError();
}
