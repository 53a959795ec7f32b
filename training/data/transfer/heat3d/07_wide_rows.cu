// a warp along x, four x-neighbours of one 128-bit load each
__global__ void rows4(int nz, int ny, int nx, float dt, const float *__restrict__ u, const float *__restrict__ k,
                      float *__restrict__ v)
{
    int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= nx || y >= ny) return;
    int i = (z * ny + y) * nx + x, p = ny * nx;
    bool rim = y == 0 || z == 0 || y == ny - 1 || z == nz - 1;
    if (nx % 4 == 0) {
        float4 c = *(const float4 *)(u + i);
        if (!rim) {
            float4 d = *(const float4 *)(u + i - nx), e = *(const float4 *)(u + i + nx);
            float4 f = *(const float4 *)(u + i - p), g = *(const float4 *)(u + i + p);
            float4 q = *(const float4 *)(k + i), o = c;
            float left = x > 0 ? u[i - 1] : 0.0f, right = x + 4 < nx ? u[i + 4] : 0.0f;
            if (x > 0) o.x += dt * q.x * (d.x + e.x + f.x + g.x + left + c.y - 6.0f * c.x);
            o.y += dt * q.y * (d.y + e.y + f.y + g.y + c.x + c.z - 6.0f * c.y);
            o.z += dt * q.z * (d.z + e.z + f.z + g.z + c.y + c.w - 6.0f * c.z);
            if (x + 4 < nx) o.w += dt * q.w * (d.w + e.w + f.w + g.w + c.z + right - 6.0f * c.w);
            c = o;
        }
        *(float4 *)(v + i) = c;
    } else {
        for (int e = 0; e < 4 && x + e < nx; e++, i++) {
            bool edge = rim || x + e == 0 || x + e == nx - 1;
            v[i] = edge ? u[i]
                 : u[i] + dt * k[i] * (u[i - p] + u[i + p] + u[i - nx] + u[i + nx] + u[i - 1] + u[i + 1] - 6.0f * u[i]);
        }
    }
}

extern "C" int heat3d_device(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v,
                             cudaStream_t stream)
{
    if (nz > 0 && ny > 0 && nx > 0)
        rows4<<<dim3((nx + 127) / 128, (ny + 3) / 4, nz), dim3(32, 4), 0, stream>>>(nz, ny, nx, dt, u, k, v);
    return cudaGetLastError();
}
