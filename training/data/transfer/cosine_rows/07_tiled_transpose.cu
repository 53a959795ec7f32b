// 32 rows a block: tiles of 32 x 32 come in side by side, then each thread adds up its own row from shared memory
__global__ void cosine_tiles(int n, int d, const float *a, const float *b, float *sim)
{
    __shared__ float ta[32][33], tb[32][33];
    int first = blockIdx.x * 32;
    float ab = 0, aa = 0, bb = 0;
    for (int j0 = 0; j0 < d; j0 += 32) {
        for (int r = threadIdx.y; r < 32; r += 8) {
            int i = first + r, j = j0 + threadIdx.x;
            bool in = i < n && j < d;
            ta[r][threadIdx.x] = in ? a[i * d + j] : 0.0f;
            tb[r][threadIdx.x] = in ? b[i * d + j] : 0.0f;
        }
        __syncthreads();
        if (threadIdx.y == 0)
            for (int k = 0; k < 32; k++) {
                float x = ta[threadIdx.x][k], y = tb[threadIdx.x][k];
                ab += x * y;
                aa += x * x;
                bb += y * y;
            }
        __syncthreads();
    }
    if (threadIdx.y == 0 && first + threadIdx.x < n)
        sim[first + threadIdx.x] = ab / (sqrtf(aa) * sqrtf(bb) + 1e-6f);
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n > 0)
        cosine_tiles<<<(n + 31) / 32, dim3(32, 8), 0, stream>>>(n, d, a, b, sim);
    return cudaGetLastError();
}
