// a thread per element, everything added with atomics
__global__ void products(int n, int d, const float *a, const float *b, float *sums)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < n * d) {
        int i = e / d;
        float x = a[e], y = b[e];
        atomicAdd(&sums[3 * i], x * y);
        atomicAdd(&sums[3 * i + 1], x * x);
        atomicAdd(&sums[3 * i + 2], y * y);
    }
}

__global__ void finish(int n, const float *sums, float *sim)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sim[i] = sums[3 * i] / (sqrtf(sums[3 * i + 1]) * sqrtf(sums[3 * i + 2]) + 1e-6f);
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    float *sums = nullptr;
    if (n <= 0) return 0;
    cudaMallocAsync((void **)&sums, 12 * (size_t)n, stream);
    cudaMemsetAsync(sums, 0, 12 * (size_t)n, stream);
    if (d > 0)
        products<<<(n * d + 255) / 256, 256, 0, stream>>>(n, d, a, b, sums);
    finish<<<(n + 255) / 256, 256, 0, stream>>>(n, sums, sim);
    cudaFreeAsync(sums, stream);
    return cudaGetLastError();
}
