/* Block 32 x 4 x 2 = 256. Seven loads (own cell, two neighbours per axis) and a store, all stride 1 along threadIdx.x.
   6 additions and 2 multiplications = 8. The guard is around the whole body. 8 accesses of 4 bytes.
   coal = 8*1.0/8
   ai = log1p(8/32)
   occ = 1.0
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 256
   gmem = log1p(8)
   ops = log1p(8)
*/
__global__ void heat(const float *u, float *v, int nx, int ny, int nz, float a, float b) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
  int at = (z * ny + y) * nx + x;
  int plane = nx * ny;
  v[at] = a * u[at] + b * (u[at - 1] + u[at + 1] + u[at - nx] + u[at + nx] + u[at - plane] + u[at + plane]);
}
extern "C" int heat_device(const float *u, float *v, int nx, int ny, int nz, float a, float b, cudaStream_t s) {
  dim3 block(32, 4, 2);
  dim3 grid((nx + 31) / 32, (ny + 3) / 4, (nz + 1) / 2);
  heat<<<grid, block, 0, s>>>(u, v, nx, ny, nz, a, b);
  return cudaGetLastError();
}
