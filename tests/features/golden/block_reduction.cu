/* Load stride 1 (inside a conditional expression that depends on the thread: 1), store of out[blockIdx.x]: stride 0.
   In the loop: `t < s`, s not known: divergence 10, one barrier 10, one addition on shared memory 10.
   Outside: one barrier, one branch `t == 0`: 1. The halving of s is loop control.
   coal = (1.0 + 0.2)/2
   ai = log1p(10/8)
   occ = 1.0
   div = 1 + 10 + 1
   xfer = 0
   atomics = 0
   sync = 1 + 10
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(10)
*/
__global__ void reduce(const float *x, float *out, int n) {
  extern __shared__ float part[];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}
extern "C" int reduce_device(const float *x, float *out, int n, cudaStream_t s) {
  reduce<<<(n + 255) / 256, 256, 256 * sizeof(float), s>>>(x, out, n);
  return cudaGetLastError();
}
