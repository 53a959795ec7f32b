// marks the last run that starts at each place, keeps the marks in a temporary, then looks back for the nearest mark
__global__ void mark(int m, int n, const int *starts, int *last)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < m && starts[r] < n)
        atomicMax(last + starts[r], r + 1);
}

__global__ void look_back(int n, const int *last, const int *value, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int j = i;
        while (j > 0 && last[j] == 0)
            j--;
        out[i] = last[j] > 0 ? value[last[j] - 1] : 0;
    }
}

extern "C" int run_expand_device(int m, int n, const int *starts, const int *value, int *out, cudaStream_t stream)
{
    int *last;
    if (n <= 0)
        return 0;
    cudaMallocAsync((void **)&last, n * sizeof(int), stream);
    cudaMemsetAsync(last, 0, n * sizeof(int), stream);
    if (m > 0)
        mark<<<(m + 255) / 256, 256, 0, stream>>>(m, n, starts, last);
    look_back<<<(n + 255) / 256, 256, 0, stream>>>(n, last, value, out);
    cudaFreeAsync(last, stream);
    return cudaGetLastError();
}
