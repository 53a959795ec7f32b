// clears with 16-byte stores; a thread adds sixteen neighbouring entries one after another
#define SLICE 16

__global__ void zero4(long n, float *dense)
{
    long i = 4 * (blockIdx.x * (long)blockDim.x + threadIdx.x);
    if (i + 4 <= n)
        *(float4 *)(dense + i) = make_float4(0, 0, 0, 0);
    else
        for (; i < n; i++)
            dense[i] = 0;
}

__global__ void slices(int cols, int nnz, const int *row, const int *col, const float *val, float *dense)
{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * SLICE;
    for (int e = first; e < min(nnz, first + SLICE); e++)
        atomicAdd(dense + (row[e] * cols + col[e]), val[e]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    long n = (long)rows * cols;
    zero4<<<(n + 1023) / 1024, 256, 0, stream>>>(n, dense);
    if (nnz > 0)
        slices<<<(nnz + 256 * SLICE - 1) / (256 * SLICE), 256, 0, stream>>>(cols, nnz, row, col, val, dense);
    return cudaGetLastError();
}
