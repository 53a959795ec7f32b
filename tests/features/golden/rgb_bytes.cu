/* Three loads of one byte at 3*i, 3*i+1, 3*i+2: stride 3 -> 0.1 each; a store of one byte, stride 1.
   Integer arithmetic on loaded data: 3 multiplications, 2 additions, 1 shift = 6 operations over 4 bytes.
   coal = (3*0.1 + 1.0)/4
   ai = log1p(6/4)
   occ = 0.4        # 512
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 512
   gmem = log1p(4)
   ops = log1p(6)
*/
typedef unsigned char u8;
__global__ void gray(const u8 *rgb, u8 *out, int n) {
  int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i < n) {
    int value = 77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2];
    out[i] = value >> 8;
  }
}
extern "C" int gray_device(const u8 *rgb, u8 *out, int n, cudaStream_t s) {
  const int threads = 512;
  gray<<<(n + threads - 1) / threads, threads, 0, s>>>(rgb, out, n);
  return cudaGetLastError();
}
