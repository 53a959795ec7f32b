// blocks of 512 double inside shared memory; block tops again by the same kernel, level by level
__global__ void level(const int *x, int *best, int *top, int n)
{
    __shared__ int s[2][512];
    int i = blockIdx.x * 512 + threadIdx.x, now = 0;
    s[0][threadIdx.x] = i < n ? x[i] : -2147483647 - 1;
    __syncthreads();
    for (int d = 1; d < 512; d *= 2) {
        int v = s[now][threadIdx.x];
        if (threadIdx.x >= d)
            v = max(v, s[now][threadIdx.x - d]);
        s[1 - now][threadIdx.x] = v;
        now = 1 - now;
        __syncthreads();
    }
    if (i < n)
        best[i] = s[now][threadIdx.x];
    if (threadIdx.x == 511 && top)
        top[blockIdx.x] = s[now][511];
}

__global__ void raise(int *best, const int *top, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + 512;
    if (i < n)
        best[i] = max(best[i], top[i / 512 - 1]);
}

static void scan(const int *x, int *best, int n, int *room, cudaStream_t stream)
{
    int blocks = (n + 511) / 512;
    level<<<blocks, 512, 0, stream>>>(x, best, blocks > 1 ? room : 0, n);
    if (blocks > 1) {
        scan(room, room, blocks, room + blocks, stream);
        raise<<<(n - 512 + 255) / 256, 256, 0, stream>>>(best, room, n);
    }
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0)
        return 0;
    int *room;
    cudaMallocAsync((void **)&room, (n / 256 + 2048) * sizeof(int), stream);
    scan(x, best, n, room, stream);
    cudaFreeAsync(room, stream);
    return cudaGetLastError();
}
