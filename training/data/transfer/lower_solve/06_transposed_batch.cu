// copies the matrices so that entry (i, j) of all systems lies together, then a thread per system
__global__ void interleave(int n, int kk, const float *l, float *t)
{
    long g = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (g < (long)n * kk)
        t[g % kk * n + g / kk] = l[g];
}

__global__ void solve(int n, int k, const float *t, const float *d, const float *b, float *x)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= n)
        return;
    float y[32];
    for (int i = 0; i < k; i++) {
        float v = b[s * k + i];
        for (int j = 0; j < i; j++)
            v -= t[(long)(i * k + j) * n + s] * y[j];
        y[i] = v / d[s * k + i];
        x[s * k + i] = y[i];
    }
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n <= 0)
        return 0;
    long all = (long)n * k * k;
    float *t;
    int e = cudaMallocAsync((void **)&t, all * sizeof(float), stream);
    if (e)
        return e;
    interleave<<<(all + 255) / 256, 256, 0, stream>>>(n, k * k, l, t);
    solve<<<(n + 127) / 128, 128, 0, stream>>>(n, k, t, d, b, x);
    cudaFreeAsync(t, stream);
    return cudaGetLastError();
}
