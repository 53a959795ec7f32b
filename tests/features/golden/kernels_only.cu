/* No host code at all: all kernels count, flagged; block and launches are not known (gap). x[i*2]: unknown block changes
   nothing: stride 2 -> 0.4; y: 1.0. One subtraction.
   coal = (0.4 + 1.0)/2
   ai = log1p(1/8)
   occ = 0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 0
   tpb = 0
   gmem = log1p(2)
   ops = log1p(1)
   missing occ kernels tpb
*/
__global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i * 2] - 1.0f;
}
