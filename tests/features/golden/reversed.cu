/* x[n-1-i] runs backwards: the distance is 1 without its sign -> 1.0. The subtraction is address arithmetic.
   coal = 2*1.0/2
   ai = log1p(0/8)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(0)
*/
__global__ void reverse(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[n - 1 - i];
}
extern "C" int reverse_device(const int *x, int *y, int n, cudaStream_t s) {
  reverse<<<(n + 255) / 256, 256, 0, s>>>(x, y, n);
  return cudaGetLastError();
}
