#define AT(z, y, x) (((z) * ny + (y)) * nx + (x))

__global__ void step(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz)
        return;
    float c = u[AT(z, y, x)];
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
        v[AT(z, y, x)] = c;
        return;
    }
    float s = u[AT(z - 1, y, x)] + u[AT(z + 1, y, x)] + u[AT(z, y - 1, x)] + u[AT(z, y + 1, x)]
            + u[AT(z, y, x - 1)] + u[AT(z, y, x + 1)];
    v[AT(z, y, x)] = c + dt * k[AT(z, y, x)] * (s - 6.0f * c);
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    if (nz <= 0 || ny <= 0 || nx <= 0)
        return cudaSuccess;
    dim3 block(8, 8, 4);
    dim3 grid((nx + 7) / 8, (ny + 7) / 8, (nz + 3) / 4);
    step<<<grid, block, 0, stream>>>(nz, ny, nx, dt, u, k, v);
    return cudaGetLastError();
}
