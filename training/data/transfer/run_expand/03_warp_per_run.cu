// one warp per run, lanes side by side
__global__ void fill(int m, int n, const int *__restrict__ starts, const int *__restrict__ value, int *__restrict__ out)
{
    int r = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (r > m)
        return;
    int from = r == 0 ? 0 : starts[r - 1];
    int to = r == m ? n : starts[r];
    int v = r == 0 ? 0 : value[r - 1];
    for (int i = from + lane; i < to; i += 32)
        out[i] = v;
}

extern "C" int run_expand_device(int m, int n, const int *starts, const int *value, int *out, cudaStream_t stream)
{
    long threads = 32L * (m + 1);
    fill<<<(threads + 127) / 128, 128, 0, stream>>>(m, n, starts, value, out);
    return cudaGetLastError();
}
