__global__ void cosine(int n, int d, const float *a, const float *b, float *sim)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float ab = 0, aa = 0, bb = 0;
        for (int j = 0; j < d; ++j) {
            float x = a[i * d + j], y = b[i * d + j];
            ab += x * y;
            aa += x * x;
            bb += y * y;
        }
        sim[i] = ab / (sqrtf(aa) * sqrtf(bb) + 1e-6f);
    }
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n > 0) cosine<<<(n + 255) / 256, 256, 0, stream>>>(n, d, a, b, sim);
    return cudaGetLastError();
}
