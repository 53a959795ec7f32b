/* p starts at x + i and advances by n each round: neighbours stay 1 apart -> 1.0, weight 10. q starts at x + i*4 and
   advances by 1: stride 4 -> 0.1, weight 10. Two additions per round (of floats): 20. Store: weight 1.
   coal = (10*1.0 + 10*0.1 + 1*1.0)/21
   ai = log1p(20/84)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(21)
   ops = log1p(20)
*/
__global__ void walk(const float *x, float *y, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float *p = x + i;
  const float *q = x;
  q += i * 4;
  float sum = 0.0f;
  for (int r = 0; r < rounds; ++r) {
    sum += *p;
    sum += *q++;
    p += n;
  }
  y[i] = sum;
}
extern "C" int walk_device(const float *x, float *y, int n, int rounds, cudaStream_t s) {
  walk<<<(n + 255) / 256, 256, 0, s>>>(x, y, n, rounds);
  return cudaGetLastError();
}
