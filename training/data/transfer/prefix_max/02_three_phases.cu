// chunks of 1024 per block, tops of the chunks by one block, then a second pass over everything
#include <limits.h>

__device__ int scan_warp(int v)
{
    int lane = threadIdx.x & 31;
    for (int d = 1; d < 32; d <<= 1) {
        int o = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v = max(v, o);
    }
    return v;
}

__device__ int scan_block(int v, int *tops)
{
    int warp = threadIdx.x >> 5;
    v = scan_warp(v);
    if ((threadIdx.x & 31) == 31) tops[warp] = v;
    __syncthreads();
    if (warp == 0) tops[threadIdx.x] = scan_warp(tops[threadIdx.x]);
    __syncthreads();
    return warp ? max(v, tops[warp - 1]) : v;
}

__global__ void chunks(const int *x, int *best, int *top, int n)
{
    __shared__ int tops[32];
    int i = blockIdx.x * 1024 + threadIdx.x;
    int v = scan_block(i < n ? x[i] : INT_MIN, tops);
    if (i < n) best[i] = v;
    if (threadIdx.x == 1023) top[blockIdx.x] = v;
}

__global__ void tops_of_chunks(int *top, int m)
{
    __shared__ int tops[32];
    int carry = INT_MIN;
    for (int base = 0; base < m; base += 1024) {
        int i = base + threadIdx.x;
        int v = max(carry, scan_block(i < m ? top[i] : INT_MIN, tops));
        carry = max(carry, tops[31]);
        if (i < m) top[i] = v;
        __syncthreads();
    }
}

__global__ void apply(int *best, const int *top, int n)
{
    int i = (blockIdx.x + 1) * 1024 + threadIdx.x;
    if (i < n) best[i] = max(best[i], top[blockIdx.x]);
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0) return 0;
    int m = (n + 1023) / 1024, *top;
    cudaMallocAsync((void **)&top, m * sizeof(int), stream);
    chunks<<<m, 1024, 0, stream>>>(x, best, top, n);
    if (m > 1) {
        tops_of_chunks<<<1, 1024, 0, stream>>>(top, m);
        apply<<<m - 1, 1024, 0, stream>>>(best, top, n);
    }
    cudaFreeAsync(top, stream);
    return cudaGetLastError();
}
