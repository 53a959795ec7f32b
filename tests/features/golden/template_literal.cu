/* STRIDE is 3 in the launched instance: stride 3 -> 0.1; the store is stride 1. The loop of UNROLL rounds weighs 10.
   One multiply and one add per round: 20. Bytes 4*10 + 4.
   coal = (10*0.1 + 1*1.0)/11
   ai = log1p(20/44)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(11)
   ops = log1p(20)
*/
template <typename T, int STRIDE, int UNROLL>
__global__ void pick(const T *x, T *y, int n, T a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T sum = 0;
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) sum += a * x[i * STRIDE + u];
  y[i] = sum;
}
template <int THREADS> void launch(const float *x, float *y, int n, cudaStream_t s) {
  pick<float, 3, 4><<<(n + THREADS - 1) / THREADS, THREADS, 0, s>>>(x, y, n, 0.25f);
}
extern "C" int f_device(const float *x, float *y, int n, cudaStream_t s) {
  launch<256>(x, y, n, s);
  return cudaGetLastError();
}
