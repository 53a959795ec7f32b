// addition by a loop of compare and swap
__device__ void add_cas(float *at, float v)
{
    int *word = (int *)at, old = *word, seen;
    do {
        seen = old;
        old = atomicCAS(word, seen, __float_as_int(__int_as_float(seen) + v));
    } while (seen != old);
}

__global__ void add(int cols, int nnz, const int *row, const int *col, const float *val, float *dense)
{
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < nnz; e += gridDim.x * blockDim.x)
        add_cas(dense + row[e] * cols + col[e], val[e]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    cudaError_t err = cudaMemsetAsync(dense, 0, sizeof(float) * rows * cols, stream);
    if (err == cudaSuccess && nnz > 0)
        add<<<min((nnz + 255) / 256, 528), 256, 0, stream>>>(cols, nnz, row, col, val, dense);
    return err ? err : cudaGetLastError();
}
