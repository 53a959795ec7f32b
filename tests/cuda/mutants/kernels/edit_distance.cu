// task: edit_distance
__global__ void diagonal(const char *a, int la, const char *b, int lb, int d, int *now, const int *last, const int *older)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = d - i;
    if (i > la || j < 0 || j > lb)
        return;
    if (i == 0 || j == 0) {
        now[i] = i + j;
        return;
    }
    int best = min(last[i - 1], last[i]) + 1;
    now[i] = min(best, older[i - 1] + (a[i - 1] != b[j - 1]));
}

extern "C" int edit_distance_device(const char *a, int la, const char *b, int lb, int *result, cudaStream_t stream)
{
    int *rows;
    cudaMallocAsync((void **)&rows, sizeof(int) * 3 * (la + 1), stream);
    for (int d = 0; d <= la + lb; d++) {
        int *now = rows + d % 3 * (la + 1), *last = rows + (d + 2) % 3 * (la + 1), *older = rows + (d + 1) % 3 * (la + 1);
        diagonal<<<(la + 64) / 64, 64, 0, stream>>>(a, la, b, lb, d, now, last, older);
    }
    cudaMemcpyAsync(result, rows + (la + lb) % 3 * (la + 1) + la, sizeof(int), cudaMemcpyDeviceToDevice, stream);
    cudaFreeAsync(rows, stream);
    return cudaGetLastError();
}
