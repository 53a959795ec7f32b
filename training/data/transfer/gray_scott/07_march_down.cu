// a thread goes down 16 rows of its column with three rows in registers
__global__ void march(int rows, int cols, const float *__restrict__ u, const float *__restrict__ v,
                      float *__restrict__ un, float *__restrict__ vn, float feed, float kill)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 16;
    if (j >= cols)
        return;
    int left = j == 0 ? cols - 1 : j - 1, right = j == cols - 1 ? 0 : j + 1;
    int above = first == 0 ? rows - 1 : first - 1;
    float u0 = u[above * cols + j], v0 = v[above * cols + j], u1 = u[first * cols + j], v1 = v[first * cols + j];
    for (int i = first; i < min(first + 16, rows); i++) {
        int below = i == rows - 1 ? 0 : i + 1;
        float u2 = u[below * cols + j], v2 = v[below * cols + j], r = u1 * v1 * v1;
        float lu = u0 + u2 + u[i * cols + left] + u[i * cols + right] - 4.0f * u1;
        float lv = v0 + v2 + v[i * cols + left] + v[i * cols + right] - 4.0f * v1;
        un[i * cols + j] = u1 + 0.16f * lu - r + feed * (1.0f - u1);
        vn[i * cols + j] = v1 + 0.08f * lv + r - (feed + kill) * v1;
        u0 = u1; u1 = u2;
        v0 = v1; v1 = v2;
    }
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    if (rows > 0 && cols > 0)
        march<<<dim3((cols + 127) / 128, (rows + 15) / 16), 128, 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    return cudaGetLastError();
}
