/* Three loops deep: the weight stops at 100. Load a[...+i]: stride 1, weight 100; store stride 1, weight 1.
   One addition at weight 100. Bytes 404.
   coal = 101*1.0/101
   ai = log1p(100/404)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(101)
   ops = log1p(100)
*/
__global__ void total(const float *a, float *out, int n, int p, int q, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int u = 0; u < p; ++u)
    for (int v = 0; v < q; ++v)
      for (int w = 0; w < r; ++w) sum += a[((u * q + v) * r + w) * n + i];
  out[i] = sum;
}
extern "C" int total_device(const float *a, float *out, int n, int p, int q, int r, cudaStream_t s) {
  total<<<(n + 255) / 256, 256, 0, s>>>(a, out, n, p, q, r);
  return cudaGetLastError();
}
