__global__ void clear(int n, float *dense)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        dense[i] = 0.0f;
}

__global__ void add(int cols, int nnz, const int *row, const int *col, const float *val, float *dense)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < nnz)
        atomicAdd(&dense[row[e] * cols + col[e]], val[e]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    int n = rows * cols;
    clear<<<(n + 255) / 256, 256, 0, stream>>>(n, dense);
    if (nnz > 0)
        add<<<(nnz + 255) / 256, 256, 0, stream>>>(cols, nnz, row, col, val, dense);
    return cudaGetLastError();
}
