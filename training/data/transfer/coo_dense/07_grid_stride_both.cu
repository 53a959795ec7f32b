// a grid of fixed size for both passes, blocks of 1024
__global__ void __launch_bounds__(1024) zero(size_t n, float *__restrict__ dense)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        dense[i] = 0.0f;
}

__global__ void __launch_bounds__(1024) scatter(int cols, int nnz, const int *__restrict__ row,
    const int *__restrict__ col, const float *__restrict__ val, float *__restrict__ dense)
{
#pragma unroll 4
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < nnz; e += gridDim.x * blockDim.x)
        atomicAdd(dense + (size_t)row[e] * cols + col[e], val[e]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    const size_t n = (size_t)rows * cols;
    zero<<<(int)min((n + 1023) / 1024, (size_t)264), 1024, 0, stream>>>(n, dense);
    if (nnz > 0)
        scatter<<<min((nnz + 1023) / 1024, 264), 1024, 0, stream>>>(cols, nnz, row, col, val, dense);
    return cudaGetLastError();
}
