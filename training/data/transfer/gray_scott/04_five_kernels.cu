// one kernel per term
__global__ void laplace(int rows, int cols, const float *f, float *out)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j < cols) {
        int up = i ? i - 1 : rows - 1, down = i + 1 < rows ? i + 1 : 0;
        int left = j ? j - 1 : cols - 1, right = j + 1 < cols ? j + 1 : 0;
        out[i * cols + j] = f[up * cols + j] + f[down * cols + j] + f[i * cols + left] + f[i * cols + right]
                          - 4.0f * f[i * cols + j];
    }
}

__global__ void reaction(int n, const float *u, const float *v, float *r)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n)
        r[k] = u[k] * v[k] * v[k];
}

__global__ void new_u(int n, const float *u, const float *lu, const float *r, float feed, float *un)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n)
        un[k] = u[k] + 0.16f * lu[k] - r[k] + feed * (1.0f - u[k]);
}

__global__ void new_v(int n, const float *v, const float *lv, const float *r, float loss, float *vn)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n)
        vn[k] = v[k] + 0.08f * lv[k] + r[k] - loss * v[k];
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    size_t n = (size_t)rows * cols;
    if (n == 0)
        return 0;
    float *lu;
    if (cudaMallocAsync((void **)&lu, 3 * n * sizeof(float), stream) != cudaSuccess)
        return cudaGetLastError();
    float *lv = lu + n, *r = lv + n;
    dim3 grid((cols + 255) / 256, rows);
    int flat = (n + 255) / 256;
    laplace<<<grid, 256, 0, stream>>>(rows, cols, u, lu);
    laplace<<<grid, 256, 0, stream>>>(rows, cols, v, lv);
    reaction<<<flat, 256, 0, stream>>>(n, u, v, r);
    new_u<<<flat, 256, 0, stream>>>(n, u, lu, r, feed, un);
    new_v<<<flat, 256, 0, stream>>>(n, v, lv, r, feed + kill, vn);
    cudaFreeAsync(lu, stream);
    return cudaGetLastError();
}
