// each thread clears a whole row; blocks of one warp add, with a fence after every entry
__global__ void clear_rows(int rows, int cols, float *dense)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows)
        for (int c = 0; c < cols; c++)
            dense[r * cols + c] = 0.0f;
}

__global__ void add_one_warp(int cols, int nnz, const int *row, const int *col, const float *val, float *dense)
{
    int e = blockIdx.x * 32 + threadIdx.x;
    if (e < nnz) {
        atomicAdd(&dense[row[e] * cols + col[e]], val[e]);
        __threadfence();
    }
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    clear_rows<<<(rows + 127) / 128, 128, 0, stream>>>(rows, cols, dense);
    if (nnz > 0)
        add_one_warp<<<(nnz + 31) / 32, 32, 0, stream>>>(cols, nnz, row, col, val, dense);
    return cudaGetLastError();
}
