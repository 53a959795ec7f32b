// a brick of 8 x 8 x 8 with its halo in shared memory
#define B 8

__global__ void brick(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v)
{
    __shared__ float s[B + 2][B + 2][B + 2];
    int x0 = blockIdx.x * B, y0 = blockIdx.y * B, z0 = blockIdx.z * B;
    int t = (threadIdx.z * B + threadIdx.y) * B + threadIdx.x;
    for (int c = t; c < (B + 2) * (B + 2) * (B + 2); c += B * B * B) {
        int lx = c % (B + 2), ly = c / (B + 2) % (B + 2), lz = c / ((B + 2) * (B + 2));
        int x = min(max(x0 + lx - 1, 0), nx - 1), y = min(max(y0 + ly - 1, 0), ny - 1);
        int z = min(max(z0 + lz - 1, 0), nz - 1);
        s[lz][ly][lx] = u[(z * ny + y) * nx + x];
    }
    __syncthreads();
    int x = x0 + threadIdx.x, y = y0 + threadIdx.y, z = z0 + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz)
        return;
    int lx = threadIdx.x + 1, ly = threadIdx.y + 1, lz = threadIdx.z + 1;
    float c = s[lz][ly][lx];
    int i = (z * ny + y) * nx + x;
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1)
        v[i] = c;
    else
        v[i] = c + dt * k[i] * (s[lz - 1][ly][lx] + s[lz + 1][ly][lx] + s[lz][ly - 1][lx] + s[lz][ly + 1][lx]
                                + s[lz][ly][lx - 1] + s[lz][ly][lx + 1] - 6.0f * c);
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    if (nz > 0 && ny > 0 && nx > 0) {
        dim3 grid((nx + B - 1) / B, (ny + B - 1) / B, (nz + B - 1) / B);
        brick<<<grid, dim3(B, B, B), 0, stream>>>(nz, ny, nx, dt, u, k, v);
    }
    return cudaGetLastError();
}
