// 04's idea with interleaved ownership by blocks: a warp owns 8192 neighbours and goes through them 32 at a time
#include <limits.h>
#define SPAN 8192

__device__ int warp_scan(int v)
{
    for (int d = 1; d < 32; d <<= 1) {
        int o = __shfl_up_sync(0xffffffff, v, d);
        if ((threadIdx.x & 31) >= d) v = max(v, o);
    }
    return v;
}

__global__ void span_top(const int *__restrict__ x, int n, int *top)
{
    int w = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    long first = (long)w * SPAN;
    if (first >= n) return;
    int m = INT_MIN;
    for (long i = first + lane; i < min((long)n, first + SPAN); i += 32) m = max(m, x[i]);
    for (int d = 16; d; d >>= 1) m = max(m, __shfl_xor_sync(0xffffffff, m, d));
    if (lane == 0) top[w] = m;
}

__global__ void span_scan(const int *__restrict__ x, int *__restrict__ best, int n, const int *__restrict__ top)
{
    int w = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    long first = (long)w * SPAN;
    if (first >= n) return;
    int carry = INT_MIN;
    for (int k = lane; k < w; k += 32) carry = max(carry, top[k]);
    for (int d = 16; d; d >>= 1) carry = max(carry, __shfl_xor_sync(0xffffffff, carry, d));
    for (long base = first; base < min((long)n, first + SPAN); base += 32) {
        long i = base + lane;
        int v = max(carry, warp_scan(i < n ? x[i] : INT_MIN));
        if (i < n) best[i] = v;
        carry = __shfl_sync(0xffffffff, v, 31);
    }
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0) return cudaSuccess;
    int spans = (n + SPAN - 1) / SPAN;
    int *top;
    cudaMallocAsync((void **)&top, spans * sizeof(int), stream);
    if (spans > 1) span_top<<<(spans + 3) / 4, 128, 0, stream>>>(x, n, top);
    span_scan<<<(spans + 3) / 4, 128, 0, stream>>>(x, best, n, top);
    cudaFreeAsync(top, stream);
    return cudaGetLastError();
}
