// norms and products by one kernel run three times, a fourth combines
__global__ void row_dot(int n, int d, const float *p, const float *q, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < d; j++)
        s += p[i * d + j] * q[i * d + j];
    out[i] = s;
}

__global__ void combine(int n, const float *ab, const float *aa, const float *bb, float *sim)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sim[i] = ab[i] / (sqrtf(aa[i]) * sqrtf(bb[i]) + 1e-6f);
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    float *tmp;
    cudaError_t e = cudaMallocAsync((void **)&tmp, 3 * sizeof(float) * n, stream);
    if (e) return e;
    int g = (n + 127) / 128;
    row_dot<<<g, 128, 0, stream>>>(n, d, a, b, tmp);
    row_dot<<<g, 128, 0, stream>>>(n, d, a, a, tmp + n);
    row_dot<<<g, 128, 0, stream>>>(n, d, b, b, tmp + 2 * n);
    combine<<<g, 128, 0, stream>>>(n, tmp, tmp + n, tmp + 2 * n, sim);
    cudaFreeAsync(tmp, stream);
    return cudaGetLastError();
}
