// a thread per pair, rows of scores in global memory, one after another
__global__ void align(int pairs, int len, const signed char *a, const signed char *b, int *score, int *rows)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p < pairs) {
        int *row = rows + (size_t)p * 65, best = 0;
        for (int j = 0; j <= len; j++)
            row[j] = 0;
        for (int i = 0; i < len; i++) {
            int diag = 0;
            for (int j = 1; j <= len; j++) {
                int h = diag + (a[p * len + i] == b[p * len + j - 1] ? 2 : -1);
                diag = row[j];
                h = max(h, max(row[j], row[j - 1]) - 2);
                row[j] = max(h, 0);
                best = max(best, h);
            }
        }
        score[p] = best;
    }
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    int *rows;
    if (pairs <= 0)
        return cudaSuccess;
    cudaError_t e = cudaMallocAsync((void **)&rows, sizeof(int) * 65 * pairs, stream);
    if (e)
        return e;
    align<<<(pairs + 255) / 256, 256, 0, stream>>>(pairs, len, a, b, score, rows);
    cudaFreeAsync(rows, stream);
    return cudaGetLastError();
}
