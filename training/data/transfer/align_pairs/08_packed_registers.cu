// a thread per pair, 8 columns at a time in registers; the column left of the strip is kept in bytes of local memory
__global__ void strips(int pairs, int len, const signed char *__restrict__ a, const signed char *__restrict__ b,
                       int *__restrict__ score)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pairs)
        return;
    unsigned char edge[64];
    int best = 0;
    for (int i = 0; i < len; i++)
        edge[i] = 0;
    for (int j0 = 0; j0 < len; j0 += 8) {
        int row[8], letter[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            row[k] = 0;
            letter[k] = j0 + k < len ? b[p * len + j0 + k] : 100;  // matches nothing
        }
        int corner = 0;
        for (int i = 0; i < len; i++) {
            int c = a[p * len + i], left = edge[i], diag = corner;
            corner = left;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                int h = max(max(diag + (letter[k] == c ? 2 : -1), 0), max(row[k], left) - 2);
                diag = row[k];
                row[k] = h;
                left = h;
                best = max(best, h);
            }
            edge[i] = left;
        }
    }
    score[p] = best;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs > 0)
        strips<<<(pairs + 63) / 64, 64, 0, stream>>>(pairs, len, a, b, score);
    return cudaGetLastError();
}
