// a warp per row, 16 bytes a lane where rows are aligned
__global__ void __launch_bounds__(128) cos4(int n, int d, const float *__restrict__ a, const float *__restrict__ b,
                                            float *__restrict__ sim)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= n) return;
    float ab = 0, aa = 0, bb = 0;
    if ((d & 3) == 0) {
        const float4 *pa = reinterpret_cast<const float4 *>(a + (size_t)row * d);
        const float4 *pb = reinterpret_cast<const float4 *>(b + (size_t)row * d);
        for (int j = threadIdx.x; j < d / 4; j += 32) {
            const float4 x = pa[j], y = pb[j];
            ab += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
            aa += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
            bb += y.x * y.x + y.y * y.y + y.z * y.z + y.w * y.w;
        }
    } else {
        for (int j = threadIdx.x; j < d; j += 32) {
            const float x = a[(size_t)row * d + j], y = b[(size_t)row * d + j];
            ab += x * y; aa += x * x; bb += y * y;
        }
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) {
        ab += __shfl_xor_sync(~0u, ab, m);
        aa += __shfl_xor_sync(~0u, aa, m);
        bb += __shfl_xor_sync(~0u, bb, m);
    }
    if (threadIdx.x == 0) sim[row] = ab / (sqrtf(aa) * sqrtf(bb) + 1e-6f);
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n > 0) cos4<<<(n + 3) / 4, dim3(32, 4), 0, stream>>>(n, d, a, b, sim);
    return cudaGetLastError();
}
