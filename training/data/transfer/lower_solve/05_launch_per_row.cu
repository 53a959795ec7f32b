// the host goes through the rows: one launch each, a thread per system
__global__ void row(int n, int k, int i, const float *l, const float *d, const float *b, float *x)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s < n) {
        float t = b[s * k + i];
        for (int j = 0; j < i; j++)
            t -= l[(s * k + i) * k + j] * x[s * k + j];
        x[s * k + i] = t / d[s * k + i];
    }
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    for (int i = 0; n > 0 && i < k; i++)
        row<<<(n + 255) / 256, 256, 0, stream>>>(n, k, i, l, d, b, x);
    return cudaGetLastError();
}
