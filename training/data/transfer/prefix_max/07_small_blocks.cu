// blocks of 64 elements, tops propagated by doubling over the array of tops
#include <limits.h>

__global__ void blocks64(const int *x, int *best, int *top, int n)
{
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] : INT_MIN;
    for (int d = 1; d < 64; d <<= 1) {
        __syncthreads();
        int v = t >= d ? s[t - d] : INT_MIN;
        __syncthreads();
        s[t] = max(s[t], v);
    }
    if (i < n) best[i] = s[t];
    if (t == 63) top[blockIdx.x] = s[63];
}

__global__ void doubling(const int *from, int *to, int m, int d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) to[i] = i >= d ? max(from[i], from[i - d]) : from[i];
}

__global__ void add_tops(int *best, const int *top, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 64 && i < n) best[i] = max(best[i], top[i / 64 - 1]);
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0) return 0;
    int m = (n + 63) / 64;
    int *a, *b;
    cudaMallocAsync((void **)&a, 2 * m * sizeof(int), stream);
    int *all = a;
    b = a + m;
    blocks64<<<m, 64, 0, stream>>>(x, best, a, n);
    for (int d = 1; d < m; d *= 2) {
        doubling<<<(m + 127) / 128, 128, 0, stream>>>(a, b, m, d);
        int *t = a; a = b; b = t;
    }
    if (m > 1) add_tops<<<(n + 127) / 128, 128, 0, stream>>>(best, a, n);
    cudaFreeAsync(all, stream);
    return cudaGetLastError();
}
