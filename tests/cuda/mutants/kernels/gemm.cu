// task: gemm
#define TILE 16
__global__ void gemm_kernel(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float acc = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        int p = first + threadIdx.x, q = first + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < m && p < k ? A[row * k + p] : 0.0f;
        b[threadIdx.y][threadIdx.x] = q < k && col < n ? B[q * n + col] : 0.0f;
        __syncthreads();
        for (int t = 0; t < TILE; t++)
            acc += a[threadIdx.y][t] * b[t][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n)
        C[row * n + col] = alpha * acc + beta * C[row * n + col];
}

extern "C" int gemm_device(int m, int n, int k, float alpha, const float *A, const float *B, float beta, float *C,
                           cudaStream_t stream)
{
    dim3 block(TILE, TILE), blocks((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    if (m > 0 && n > 0)
        gemm_kernel<<<blocks, block, 0, stream>>>(m, n, k, alpha, A, B, beta, C);
    return cudaGetLastError();
}
