__device__ float lap(const float *f, int rows, int cols, int i, int j)
{
    int up = i == 0 ? rows - 1 : i - 1, down = i == rows - 1 ? 0 : i + 1;
    int left = j == 0 ? cols - 1 : j - 1, right = j == cols - 1 ? 0 : j + 1;
    return f[up * cols + j] + f[down * cols + j] + f[i * cols + left] + f[i * cols + right] - 4.0f * f[i * cols + j];
}

__global__ void react(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= rows || j >= cols)
        return;
    float a = u[i * cols + j], b = v[i * cols + j], r = a * b * b;
    un[i * cols + j] = a + 0.16f * lap(u, rows, cols, i, j) - r + feed * (1.0f - a);
    vn[i * cols + j] = b + 0.08f * lap(v, rows, cols, i, j) + r - (feed + kill) * b;
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    if (rows > 0 && cols > 0)
        react<<<dim3((cols + 15) / 16, (rows + 15) / 16), dim3(16, 16), 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    return cudaGetLastError();
}
