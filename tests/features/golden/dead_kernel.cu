/* Reward padding: `pretty` is launched by nobody, `padded` only under a condition that is never true, and code behind a
   return and in `if (0)` is unreachable. Only `real` counts: load and store of stride 2 (0.4), one multiplication.
   coal = 2*0.4/2
   ai = log1p(1/8)
   occ = 0.1
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 1024
   gmem = log1p(2)
   ops = log1p(1)
*/
__global__ void pretty(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] * 2.0f + 1.0f; }
__global__ void padded(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x] * 2.0f + 1.0f; }
__global__ void real(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[2 * i] = x[2 * i] * 3.0f;
  if (0) y[i] = x[i] + x[i + 1] + x[i + 2];
  if (threadIdx.x > 5000) y[i] = x[i] * x[i + 1];
  return;
  y[i] = x[i];
}
static void never(const float *x, float *y) { pretty<<<1, 256>>>(x, y); }
void nobody_calls_this(const float *x, float *y) { pretty<<<1, 256>>>(x, y); }
extern "C" int f_device(const float *x, float *y, int n, cudaStream_t s) {
  const bool debug = false;
  if (debug) padded<<<1, 256, 0, s>>>(x, y);
  real<<<(n + 1023) / 1024, 1024, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
