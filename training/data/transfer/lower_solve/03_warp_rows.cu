// a warp per system: each row's product by lanes side by side and a shuffle sum; rows one after another
__global__ void rows(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    int s = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (s >= n)
        return;
    float mine = 0.0f;
    for (int i = 0; i < k; i++) {
        float p = lane < i ? l[(s * k + i) * k + lane] * mine : 0.0f;
        for (int m = 16; m > 0; m >>= 1)
            p += __shfl_xor_sync(0xffffffffu, p, m);
        if (lane == i)
            mine = (b[s * k + i] - p) / d[s * k + i];
    }
    if (lane < k)
        x[s * k + lane] = mine;
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n > 0)
        rows<<<(n + 7) / 8, dim3(32, 8), 0, stream>>>(n, k, l, d, b, x);
    return cudaGetLastError();
}
