__inline__ __device__ float warpSum(float v)
{
    for (int off = 16; off; off >>= 1) v += __shfl_down_sync(0xffffffff, v, off);
    return v;
}

__global__ void cosineWarp(int n, int d, const float *__restrict__ a, const float *__restrict__ b, float *sim)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= n) return;
    float ab = 0.f, aa = 0.f, bb = 0.f;
    for (int j = lane; j < d; j += 32) {
        float x = a[row * d + j], y = b[row * d + j];
        ab = fmaf(x, y, ab);
        aa = fmaf(x, x, aa);
        bb = fmaf(y, y, bb);
    }
    ab = warpSum(ab); aa = warpSum(aa); bb = warpSum(bb);
    if (lane == 0) sim[row] = ab / (sqrtf(aa) * sqrtf(bb) + 1e-6f);
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n > 0) cosineWarp<<<(n + 7) / 8, 256, 0, stream>>>(n, d, a, b, sim);
    return cudaGetLastError();
}
