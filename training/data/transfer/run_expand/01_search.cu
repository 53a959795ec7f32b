// one thread per output: binary search for its run
__global__ void expand(int m, int n, const int *starts, const int *value, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int lo = 0, hi = m;  // first run that starts after i
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (starts[mid] <= i)
            lo = mid + 1;
        else
            hi = mid;
    }
    out[i] = lo > 0 ? value[lo - 1] : 0;
}

extern "C" int run_expand_device(int m, int n, const int *starts, const int *value, int *out, cudaStream_t stream)
{
    if (n > 0)
        expand<<<(n + 255) / 256, 256, 0, stream>>>(m, n, starts, value, out);
    return cudaGetLastError();
}
