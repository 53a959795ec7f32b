// first only the maximum of each chunk of 2048, then every block scans its chunk from its carry; int4 loads inside
#include <limits.h>
#define ITEMS 8
#define THREADS 256
#define CHUNK (ITEMS * THREADS)

__device__ __forceinline__ void load(const int *__restrict__ x, int n, int at, int v[ITEMS])
{
    if (at + ITEMS <= n) {
        int4 a = *reinterpret_cast<const int4 *>(x + at), b = *reinterpret_cast<const int4 *>(x + at + 4);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    } else {
        for (int k = 0; k < ITEMS; ++k) v[k] = at + k < n ? x[at + k] : INT_MIN;
    }
}

__device__ __forceinline__ int warp_inclusive(int v)
{
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int o = __shfl_up_sync(~0u, v, d);
        v = (threadIdx.x & 31) >= d ? max(v, o) : v;
    }
    return v;
}

__global__ void __launch_bounds__(THREADS) maxima(const int *__restrict__ x, int n, int *__restrict__ top)
{
    __shared__ int part[THREADS / 32];
    int v[ITEMS], m = INT_MIN;
    load(x, n, blockIdx.x * CHUNK + threadIdx.x * ITEMS, v);
    for (int k = 0; k < ITEMS; ++k) m = max(m, v[k]);
    m = __reduce_max_sync(~0u, m);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < THREADS / 32; ++k) m = max(m, part[k]);
        top[blockIdx.x] = m;
    }
}

__global__ void __launch_bounds__(1024) carries(int *top, int m)
{
    __shared__ int part[32];
    __shared__ int carried;
    if (threadIdx.x == 0) carried = INT_MIN;
    for (int base = 0; base < m; base += 1024) {
        const int i = base + threadIdx.x, warp = threadIdx.x >> 5;
        int v = warp_inclusive(i < m ? top[i] : INT_MIN);
        if ((threadIdx.x & 31) == 31) part[warp] = v;
        __syncthreads();
        if (warp == 0) part[threadIdx.x] = warp_inclusive(part[threadIdx.x]);
        __syncthreads();
        v = max(carried, warp ? max(v, part[warp - 1]) : v);
        if (i < m) top[i] = v;
        __syncthreads();
        if (threadIdx.x == 1023) carried = v;
        __syncthreads();
    }
}

__global__ void __launch_bounds__(THREADS) finish(const int *__restrict__ x, int *__restrict__ best, int n,
                                                  const int *__restrict__ top)
{
    __shared__ int part[THREADS / 32];
    const int at = blockIdx.x * CHUNK + threadIdx.x * ITEMS, warp = threadIdx.x / 32;
    int v[ITEMS];
    load(x, n, at, v);
    for (int k = 1; k < ITEMS; ++k) v[k] = max(v[k], v[k - 1]);
    const int inclusive = warp_inclusive(v[ITEMS - 1]);
    int before = __shfl_up_sync(~0u, inclusive, 1);
    if (threadIdx.x % 32 == 0) before = INT_MIN;
    if (threadIdx.x % 32 == 31) part[warp] = inclusive;
    __syncthreads();
    for (int k = 0; k < warp; ++k) before = max(before, part[k]);
    if (blockIdx.x) before = max(before, top[blockIdx.x - 1]);
    for (int k = 0; k < ITEMS; ++k) v[k] = max(v[k], before);
    if (at + ITEMS <= n) {
        *reinterpret_cast<int4 *>(best + at) = make_int4(v[0], v[1], v[2], v[3]);
        *reinterpret_cast<int4 *>(best + at + 4) = make_int4(v[4], v[5], v[6], v[7]);
    } else
        for (int k = 0; k < ITEMS && at + k < n; ++k) best[at + k] = v[k];
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0) return cudaSuccess;
    const int m = (n + CHUNK - 1) / CHUNK;
    int *top = nullptr;
    if (m > 1) {
        cudaMallocAsync((void **)&top, m * sizeof(int), stream);
        maxima<<<m, THREADS, 0, stream>>>(x, n, top);
        carries<<<1, 1024, 0, stream>>>(top, m);
    }
    finish<<<m, THREADS, 0, stream>>>(x, best, n, top);
    if (top) cudaFreeAsync(top, stream);
    return cudaGetLastError();
}
