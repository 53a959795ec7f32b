// task: spmv_csr
__global__ void spmv_kernel(int rows, const int *row_ptr, const int *col, const double *val, const double *x, double *y)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    double sum = 0.0;
    for (int k = row_ptr[row] + lane; k < row_ptr[row + 1]; k += 32)
        sum += val[k] * x[col[k]];
    for (int reach = 16; reach > 0; reach /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, reach);
    if (lane == 0)
        y[row] = sum;
}

extern "C" int spmv_csr_device(int rows, int cols, int nnz, const int *row_ptr, const int *col, const double *val,
                               const double *x, double *y, cudaStream_t stream)
{
    if (rows > 0)
        spmv_kernel<<<(rows + 3) / 4, 128, 0, stream>>>(rows, row_ptr, col, val, x, y);
    return cudaGetLastError();
}
