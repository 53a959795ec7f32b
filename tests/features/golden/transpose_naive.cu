/* in[y*w+x]: stride 1; out[x*h+y]: stride h -> -0.5. Block 32 x 32 = 1024 -> 0.1.
   coal = (1.0 - 0.5)/2
   ai = log1p(0/8)
   occ = 0.1
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 1024
   gmem = log1p(2)
   ops = log1p(0)
*/
__global__ void transpose(const float *in, float *out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) out[x * h + y] = in[y * w + x];
}
extern "C" int transpose_device(const float *in, float *out, int w, int h, cudaStream_t s) {
  dim3 block(32, 32);
  transpose<<<dim3((w + 31) / 32, (h + 31) / 32), block, 0, s>>>(in, out, w, h);
  return cudaGetLastError();
}
