// a block makes 1024 outputs: two searches find the runs it needs, each thread then searches among those only
#define TILE 1024

__device__ int upper(const int *a, int lo, int hi, int key)
{
    while (lo < hi) {
        int mid = (lo + hi) >> 1;
        if (a[mid] <= key) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

__global__ void __launch_bounds__(256) expand(int m, int n, const int *__restrict__ starts,
                                              const int *__restrict__ value, int *__restrict__ out)
{
    __shared__ int ends[2];
    int base = blockIdx.x * TILE;
    if (threadIdx.x < 2)
        ends[threadIdx.x] = upper(starts, 0, m, threadIdx.x ? min(base + TILE, n) - 1 : base);
    __syncthreads();
    int lo = ends[0], hi = ends[1];
    for (int i = base + threadIdx.x; i < min(base + TILE, n); i += 256) {
        int r = upper(starts, lo, hi, i);
        out[i] = r ? value[r - 1] : 0;
    }
}

extern "C" int run_expand_device(int m, int n, const int *starts, const int *value, int *out, cudaStream_t stream)
{
    if (n > 0)
        expand<<<(n + TILE - 1) / TILE, 256, 0, stream>>>(m, n, starts, value, out);
    return cudaGetLastError();
}
