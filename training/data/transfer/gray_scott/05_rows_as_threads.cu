// threadIdx.x is the row
__global__ void gs(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < cols) {
        int up = (i == 0 ? rows : i) - 1, down = i == rows - 1 ? 0 : i + 1;
        int left = (j == 0 ? cols : j) - 1, right = j == cols - 1 ? 0 : j + 1;
        float a = u[i * cols + j], b = v[i * cols + j], r = a * b * b;
        float la = u[up * cols + j] + u[down * cols + j] + u[i * cols + left] + u[i * cols + right] - 4.0f * a;
        float lb = v[up * cols + j] + v[down * cols + j] + v[i * cols + left] + v[i * cols + right] - 4.0f * b;
        un[i * cols + j] = a + 0.16f * la - r + feed * (1.0f - a);
        vn[i * cols + j] = b + 0.08f * lb + r - (feed + kill) * b;
    }
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    if (rows > 0 && cols > 0)
        gs<<<dim3((rows + 15) / 16, (cols + 15) / 16), dim3(16, 16), 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    return cudaGetLastError();
}
