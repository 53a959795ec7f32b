// laplacian to memory first, update second
__global__ void laplacian(int nz, int ny, int nx, const float *u, float *lap)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x < nx) {
        int i = (z * ny + y) * nx + x;
        float s = 0.0f;
        if (x > 0 && y > 0 && z > 0 && x < nx - 1 && y < ny - 1 && z < nz - 1)
            s = u[i - ny * nx] + u[i + ny * nx] + u[i - nx] + u[i + nx] + u[i - 1] + u[i + 1] - 6.0f * u[i];
        lap[i] = s;
    }
}

__global__ void update(int n, float dt, const float *u, const float *k, const float *lap, float *v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] = u[i] + dt * k[i] * lap[i];
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    int n = nz * ny * nx;
    if (n <= 0)
        return 0;
    float *lap;
    cudaMallocAsync((void **)&lap, (size_t)n * 4, stream);
    laplacian<<<dim3((nx + 127) / 128, ny, nz), 128, 0, stream>>>(nz, ny, nx, u, lap);
    update<<<(n + 255) / 256, 256, 0, stream>>>(n, dt, u, k, lap, v);
    cudaFreeAsync(lap, stream);
    return cudaGetLastError();
}
