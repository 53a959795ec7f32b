/* Loads of __constant__ and __shared__ memory are no global accesses; of a __device__ array they are: table[i], stride 1.
   Global: table[i], y[i]. Operations: one multiply, one add. One barrier.
   coal = 2*1.0/2
   ai = log1p(2/8)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 1
   kernels = 1
   tpb = 256
   gmem = log1p(2)
   ops = log1p(2)
*/
__constant__ float weight[256];
__device__ float table[1 << 20];
__global__ void look(float *y) {
  __shared__ float local[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  local[threadIdx.x] = table[i];
  __syncthreads();
  y[i] = local[255 - threadIdx.x] * weight[threadIdx.x] + weight[0];
}
extern "C" int look_device(float *y, int n, cudaStream_t s) {
  look<<<n / 256, 256, 0, s>>>(y);
  return cudaGetLastError();
}
