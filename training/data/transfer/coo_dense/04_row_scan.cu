// counts per row, entries ordered by row, then each block clears its own row and adds the entries of it
__global__ void count(int nnz, const int *row, int *ends)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < nnz)
        atomicAdd(&ends[row[e] + 1], 1);
}

__global__ void offsets(int rows, int *ends)
{
    // one warp goes through the rows
    int carry = 0;
    for (int base = 0; base <= rows; base += 32) {
        int r = base + threadIdx.x;
        int v = r <= rows ? ends[r] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int o = __shfl_up_sync(0xffffffffu, v, d);
            if (threadIdx.x >= d) v += o;
        }
        v += carry;
        if (r <= rows) ends[r] = v;
        carry = __shfl_sync(0xffffffffu, v, 31);
    }
}

__global__ void place(int nnz, const int *row, const int *ends, int *used, int *order)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < nnz)
        order[ends[row[e]] + atomicAdd(&used[row[e]], 1)] = e;
}

__global__ void fill(int cols, const int *ends, const int *order, const int *col, const float *val, float *dense)
{
    float *mine = dense + (size_t)blockIdx.x * cols;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        mine[c] = 0.0f;
    __syncthreads();
    for (int k = ends[blockIdx.x] + threadIdx.x; k < ends[blockIdx.x + 1]; k += blockDim.x)
        atomicAdd(&mine[col[order[k]]], val[order[k]]);
}

extern "C" int coo_dense_device(int rows, int cols, int nnz, const int *row, const int *col, const float *val, float *dense, cudaStream_t stream)
{
    int *ends, grid = (nnz + 255) / 256;
    cudaMallocAsync((void **)&ends, sizeof(int) * (2 * rows + 1 + nnz), stream);
    int *used = ends + rows + 1, *order = used + rows;
    cudaMemsetAsync(ends, 0, sizeof(int) * (2 * rows + 1), stream);
    if (nnz > 0) {
        count<<<grid, 256, 0, stream>>>(nnz, row, ends);
        offsets<<<1, 32, 0, stream>>>(rows, ends);
        place<<<grid, 256, 0, stream>>>(nnz, row, ends, used, order);
    }
    fill<<<rows, 256, 0, stream>>>(cols, ends, order, col, val, dense);
    cudaFreeAsync(ends, stream);
    return cudaGetLastError();
}
