// a thread per pair, its row of scores and its reads in shared memory, interleaved by thread
#define T 64

__global__ void align(int pairs, int len, const signed char *a, const signed char *b, int *score)
{
    extern __shared__ unsigned char room[];
    unsigned char *row = room, *mine = room + 65 * T;
    int p = blockIdx.x * T + threadIdx.x, t = threadIdx.x;
    if (p >= pairs)
        return;
    for (int j = 0; j <= len; j++)
        row[j * T + t] = 0;
    for (int j = 0; j < len; j++)
        mine[j * T + t] = b[p * len + j];
    int best = 0;
    for (int i = 0; i < len; i++) {
        int diag = 0, left = 0, c = a[p * len + i];
        for (int j = 1; j <= len; j++) {
            int up = row[j * T + t];
            int h = max(max(diag + (mine[(j - 1) * T + t] == c ? 2 : -1), max(up, left) - 2), 0);
            row[j * T + t] = h;  // at most 128
            diag = up;
            left = h;
            best = max(best, h);
        }
    }
    score[p] = best;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs > 0)
        align<<<(pairs + T - 1) / T, T, (65 + 64) * T, stream>>>(pairs, len, a, b, score);
    return cudaGetLastError();
}
