// chunk maxima by atomics, then every block of 256 reduces all chunk maxima before it itself
#include <limits.h>

__global__ void chunk_max(const int *x, int n, int *top)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicMax(&top[i / 4096], x[i]);
}

__global__ void low(int *top, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m)
        top[i] = INT_MIN;
}

__global__ void scan(const int *x, int *best, int n, const int *top)
{
    __shared__ int s[256];
    int chunk = blockIdx.x, t = threadIdx.x;
    int carry = INT_MIN;
    for (int k = 0; k < chunk; k++)
        carry = max(carry, top[k]);
    for (int base = chunk * 4096; base < min(n, (chunk + 1) * 4096); base += 256) {
        int i = base + t;
        s[t] = i < n ? x[i] : INT_MIN;
        __syncthreads();
        for (int d = 1; d < 256; d *= 2) {
            int o = t >= d ? s[t - d] : INT_MIN;
            __syncthreads();
            s[t] = max(s[t], o);
            __syncthreads();
        }
        if (i < n)
            best[i] = max(carry, s[t]);
        carry = max(carry, s[255]);
        __syncthreads();
    }
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0)
        return cudaSuccess;
    int m = (n + 4095) / 4096, *top;
    cudaMallocAsync((void **)&top, m * sizeof(int), stream);
    low<<<(m + 255) / 256, 256, 0, stream>>>(top, m);
    chunk_max<<<(n + 255) / 256, 256, 0, stream>>>(x, n, top);
    scan<<<m, 256, 0, stream>>>(x, best, n, top);
    cudaFreeAsync(top, stream);
    return cudaGetLastError();
}
