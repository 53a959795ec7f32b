__global__ void solve(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= n)
        return;
    for (int i = 0; i < k; i++) {
        float t = b[s * k + i];
        for (int j = 0; j < i; j++)
            t -= l[(s * k + i) * k + j] * x[s * k + j];
        x[s * k + i] = t / d[s * k + i];
    }
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n > 0)
        solve<<<(n + 127) / 128, 128, 0, stream>>>(n, k, l, d, b, x);
    return cudaGetLastError();
}
