// both fields staged as 32 x 8 tiles with a halo
#define TX 32
#define TY 8

__global__ void __launch_bounds__(TX * TY) tiled(int rows, int cols, const float *__restrict__ u,
    const float *__restrict__ v, float *__restrict__ un, float *__restrict__ vn, float feed, float kill)
{
    __shared__ float su[TY + 2][TX + 2], sv[TY + 2][TX + 2];
    int i0 = blockIdx.y * TY, j0 = blockIdx.x * TX;
    for (int r = threadIdx.y; r < TY + 2; r += TY)
        for (int c = threadIdx.x; c < TX + 2; c += TX) {
            int i = i0 + r - 1, j = j0 + c - 1;
            i = i < 0 ? rows - 1 : i >= rows ? (i == rows ? 0 : rows - 1) : i;
            j = j < 0 ? cols - 1 : j >= cols ? (j == cols ? 0 : cols - 1) : j;
            su[r][c] = u[i * cols + j];
            sv[r][c] = v[i * cols + j];
        }
    __syncthreads();
    int i = i0 + threadIdx.y, j = j0 + threadIdx.x, y = threadIdx.y + 1, x = threadIdx.x + 1;
    if (i < rows && j < cols) {
        float a = su[y][x], b = sv[y][x], r = a * b * b;
        float la = su[y - 1][x] + su[y + 1][x] + su[y][x - 1] + su[y][x + 1] - 4.0f * a;
        float lb = sv[y - 1][x] + sv[y + 1][x] + sv[y][x - 1] + sv[y][x + 1] - 4.0f * b;
        un[i * cols + j] = a + 0.16f * la - r + feed * (1.0f - a);
        vn[i * cols + j] = b + 0.08f * lb + r - (feed + kill) * b;
    }
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    if (rows > 0 && cols > 0)
        tiled<<<dim3((cols + TX - 1) / TX, (rows + TY - 1) / TY), dim3(TX, TY), 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    return cudaGetLastError();
}
