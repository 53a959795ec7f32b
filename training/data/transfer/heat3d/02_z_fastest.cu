// threadIdx.x is z: neighbours of a warp are whole planes apart
__global__ void step(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v)
{
    int z = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.z;
    if (z >= nz || y >= ny)
        return;
    int i = (z * ny + y) * nx + x, plane = ny * nx;
    if (z == 0 || y == 0 || x == 0 || z == nz - 1 || y == ny - 1 || x == nx - 1)
        v[i] = u[i];
    else
        v[i] = u[i] + dt * k[i] * (u[i - plane] + u[i + plane] + u[i - nx] + u[i + nx] + u[i - 1] + u[i + 1] - 6 * u[i]);
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    if (nz > 0 && ny > 0 && nx > 0)
        step<<<dim3((nz + 31) / 32, (ny + 3) / 4, nx), dim3(32, 4), 0, stream>>>(nz, ny, nx, dt, u, k, v);
    return cudaGetLastError();
}
