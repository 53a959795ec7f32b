// every thread owns a run of 256 neighbours: its maximum, a scan of the maxima by thread 0, then its own scan
#include <limits.h>
#define RUN 256

__global__ void highest(const int *x, int n, int *top)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t * RUN >= n) return;
    int m = INT_MIN;
    for (int i = t * RUN; i < min(n, (t + 1) * RUN); i++)
        m = max(m, x[i]);
    top[t] = m;
}

__global__ void serial(int *top, int m)
{
    int so_far = INT_MIN;
    for (int t = 0; t < m; t++) {
        int mine = top[t];
        top[t] = so_far;
        so_far = max(so_far, mine);
    }
}

__global__ void runs(const int *x, int *best, int n, const int *top)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t * RUN >= n) return;
    int m = top[t];
    for (int i = t * RUN; i < min(n, (t + 1) * RUN); i++) {
        m = max(m, x[i]);
        best[i] = m;
    }
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n < 1) return 0;
    int m = (n + RUN - 1) / RUN;
    int *top;
    cudaMallocAsync((void **)&top, m * sizeof(int), stream);
    highest<<<(m + 63) / 64, 64, 0, stream>>>(x, n, top);
    serial<<<1, 1, 0, stream>>>(top, m);
    runs<<<(m + 63) / 64, 64, 0, stream>>>(x, best, n, top);
    cudaFreeAsync(top, stream);
    return cudaGetLastError();
}
