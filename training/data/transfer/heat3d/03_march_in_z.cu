// a column of threads marches through z and keeps three planes' values in registers
__global__ void __launch_bounds__(256) march(int nz, int ny, int nx, float dt, const float *__restrict__ u,
                                             const float *__restrict__ k, float *__restrict__ v)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= nx || y >= ny) return;
    const bool rim = x == 0 || y == 0 || x == nx - 1 || y == ny - 1;
    const size_t plane = (size_t)ny * nx;
    size_t i = (size_t)y * nx + x;
    float below = 0.f, here = u[i];
    for (int z = 0; z < nz; ++z, i += plane) {
        const float above = z + 1 < nz ? u[i + plane] : 0.f;
        if (rim || z == 0 || z == nz - 1)
            v[i] = here;
        else {
            const float s = below + above + u[i - nx] + u[i + nx] + u[i - 1] + u[i + 1];
            v[i] = here + dt * k[i] * (s - 6.0f * here);
        }
        below = here;
        here = above;
    }
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    if (nz > 0 && ny > 0 && nx > 0)
        march<<<dim3((nx + 31) / 32, (ny + 7) / 8), dim3(32, 8), 0, stream>>>(nz, ny, nx, dt, u, k, v);
    return cudaGetLastError();
}
