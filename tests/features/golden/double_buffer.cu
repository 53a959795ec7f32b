/* Host pointers are swapped in a loop; inside the kernel pointers are chosen by parity and swapped each round: stride 1.
   Loop weight 10: one load, one store; one addition: 10.
   coal = 20*1.0/20
   ai = log1p(10/80)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 10
   kernels = 1
   tpb = 256
   gmem = log1p(20)
   ops = log1p(10)
*/
__global__ void rounds(float *a, float *b, int count) {
  float *from = a, *to = b;
  for (int r = 0; r < count; ++r) {
    to[threadIdx.x] = from[threadIdx.x] + 1.0f;
    float *swap = from;
    from = to;
    to = swap;
    __syncthreads();
  }
}
extern "C" int rounds_device(float *a, float *b, int count, cudaStream_t s) {
  for (int t = 0; t < 2; ++t) {
    rounds<<<1, 256, 0, s>>>(a, b, count);
    float *c = a;
    a = b;
    b = c;
  }
  return cudaGetLastError();
}
