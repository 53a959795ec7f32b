// one flat index, divisions to get back x, y and z
__global__ void flat(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nz * ny * nx)
        return;
    int x = i % nx, y = (i / nx) % ny, z = i / (nx * ny);
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1) {
        float lap = -6.0f * u[i];
        lap += u[i - 1];
        lap += u[i + 1];
        lap += u[i - nx];
        lap += u[i + nx];
        lap += u[i - nx * ny];
        lap += u[i + nx * ny];
        v[i] = u[i] + dt * k[i] * lap;
    } else
        v[i] = u[i];
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    int n = nz * ny * nx;
    if (n > 0)
        flat<<<(n + 511) / 512, 512, 0, stream>>>(nz, ny, nx, dt, u, k, v);
    return cudaGetLastError();
}
