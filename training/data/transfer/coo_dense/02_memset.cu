// memset, then four entries a thread with wide loads
__global__ void add4(int cols, int nnz, const int *__restrict__ row, const int *__restrict__ col,
                     const float *__restrict__ val, float *dense)
{
    int e = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (e + 4 <= nnz) {
        int4 r = *(const int4 *)(row + e), c = *(const int4 *)(col + e);
        float4 v = *(const float4 *)(val + e);
        atomicAdd(dense + r.x * cols + c.x, v.x);
        atomicAdd(dense + r.y * cols + c.y, v.y);
        atomicAdd(dense + r.z * cols + c.z, v.z);
        atomicAdd(dense + r.w * cols + c.w, v.w);
    } else
        for (; e < nnz; e++)
            atomicAdd(dense + row[e] * cols + col[e], val[e]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    cudaMemsetAsync(dense, 0, sizeof(float) * rows * cols, stream);
    if (nnz > 0)
        add4<<<(nnz + 511) / 512, 128, 0, stream>>>(cols, nnz, row, col, val, dense);
    return cudaGetLastError();
}
