/* threadIdx.x runs along z, the slowest axis: own cell and both neighbours and the store have stride nx*ny -> -0.5.
   Two additions and one multiplication.
   coal = 4*-0.5/4
   ai = log1p(3/16)
   occ = 0.4       # 64
   div = 0
   xfer = 0
   atomics = 0
   sync = 0
   kernels = 1
   tpb = 64
   gmem = log1p(4)
   ops = log1p(3)
*/
__global__ void blur(const float *u, float *v, int nx, int ny, int nz) {
  const int z = blockIdx.x * 64 + threadIdx.x;
  const int at = z * nx * ny + blockIdx.y * nx + blockIdx.z;
  if (z > 0 && z < nz - 1) {
    v[at] = 0.33f * (u[at - nx * ny] + u[at] + u[at + nx * ny]);
  }
}
extern "C" int blur_device(const float *u, float *v, int nx, int ny, int nz, cudaStream_t s) {
  blur<<<dim3((nz + 63) / 64, ny, nx), 64, 0, s>>>(u, v, nx, ny, nz);
  return cudaGetLastError();
}
