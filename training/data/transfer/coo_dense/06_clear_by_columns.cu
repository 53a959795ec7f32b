// clearing goes down the columns; flat positions are kept in a temporary
__global__ void clear(int rows, int cols, float *dense)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows)
        dense[(size_t)r * cols + blockIdx.y] = 0.0f;
}

__global__ void positions(int cols, int nnz, const int *row, const int *col, int *at)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < nnz)
        at[e] = row[e] * cols + col[e];
}

__global__ void add(int nnz, const int *at, const float *val, float *dense)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < nnz)
        atomicAdd(&dense[at[e]], val[e]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    clear<<<dim3((rows + 63) / 64, cols), 64, 0, stream>>>(rows, cols, dense);
    if (nnz > 0) {
        int *at;
        cudaMallocAsync((void **)&at, sizeof(int) * nnz, stream);
        positions<<<(nnz + 127) / 128, 128, 0, stream>>>(cols, nnz, row, col, at);
        add<<<(nnz + 127) / 128, 128, 0, stream>>>(nnz, at, val, dense);
        cudaFreeAsync(at, stream);
    }
    return cudaGetLastError();
}
