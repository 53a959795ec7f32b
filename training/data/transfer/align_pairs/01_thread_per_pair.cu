// the C, one pair a thread
__global__ void align(int pairs, int len, const signed char *a, const signed char *b, int *score)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pairs)
        return;
    int row[65], best = 0;
    for (int j = 0; j <= len; j++)
        row[j] = 0;
    for (int i = 0; i < len; i++) {
        int diag = 0;
        for (int j = 1; j <= len; j++) {
            int h = diag + (a[p * len + i] == b[p * len + j - 1] ? 2 : -1);
            diag = row[j];
            if (row[j] - 2 > h) h = row[j] - 2;
            if (row[j - 1] - 2 > h) h = row[j - 1] - 2;
            if (h < 0) h = 0;
            row[j] = h;
            if (h > best) best = h;
        }
    }
    score[p] = best;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs > 0)
        align<<<(pairs + 127) / 128, 128, 0, stream>>>(pairs, len, a, b, score);
    return cudaGetLastError();
}
