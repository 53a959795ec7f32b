// a warp per system: lane i keeps row i's right side; column by column it is updated
__global__ void columns(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    int s = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (s >= n)
        return;
    float t = lane < k ? b[s * k + lane] : 0.0f, diag = lane < k ? d[s * k + lane] : 1.0f;
    for (int j = 0; j < k; j++) {
        float xj = __shfl_sync(0xffffffffu, t / diag, j);
        if (lane == j)
            t = xj;
        else if (lane > j && lane < k)
            t -= l[(s * k + lane) * k + j] * xj;
        if (lane <= j)
            diag = 1.0f;
    }
    if (lane < k)
        x[s * k + lane] = t;
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n > 0)
        columns<<<(n + 3) / 4, 128, 0, stream>>>(n, k, l, d, b, x);
    return cudaGetLastError();
}
