// the matrix comes into shared memory side by side, then a warp works on it column by column
__global__ void shared_solve(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    __shared__ float a[4][32][33];
    int w = threadIdx.y, lane = threadIdx.x, s = blockIdx.x * 4 + w;
    if (s < n)
        for (int e = lane; e < k * k; e += 32)
            a[w][e / k][e % k] = l[(size_t)s * k * k + e];
    __syncthreads();
    if (s >= n)
        return;
    float t = 0.0f, inv = 1.0f;
    if (lane < k) {
        t = b[s * k + lane];
        inv = d[s * k + lane];
    }
    for (int j = 0; j < k; j++) {
        if (lane == j)
            t /= inv;
        float xj = __shfl_sync(0xffffffffu, t, j);
        if (lane > j && lane < k)
            t -= a[w][lane][j] * xj;
    }
    if (lane < k)
        x[s * k + lane] = t;
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n > 0)
        shared_solve<<<(n + 3) / 4, dim3(32, 4), 0, stream>>>(n, k, l, d, b, x);
    return cudaGetLastError();
}
