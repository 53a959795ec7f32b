// a block of 32 per pair, the whole score matrix in shared memory, then a reduction over it
__global__ void matrix(int pairs, int len, const signed char *a, const signed char *b, int *score)
{
    __shared__ short h[65][65];
    int p = blockIdx.x, t = threadIdx.x;
    for (int k = t; k < 65 * 65; k += 32)
        h[k / 65][k % 65] = 0;
    __syncthreads();
    for (int d = 0; d < 2 * len - 1; d++) {
        for (int i = max(0, d - len + 1) + t; i <= min(d, len - 1); i += 32) {
            int j = d - i;
            int s = h[i][j] + (a[p * len + i] == b[p * len + j] ? 2 : -1);
            s = max(s, max(h[i][j + 1], h[i + 1][j]) - 2);
            h[i + 1][j + 1] = max(s, 0);
        }
        __syncthreads();
    }
    int best = 0;
    for (int k = t; k < 65 * 65; k += 32)
        best = max(best, (int)h[k / 65][k % 65]);
    for (int m = 16; m > 0; m /= 2)
        best = max(best, __shfl_down_sync(0xffffffff, best, m));
    if (t == 0)
        score[p] = best;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs > 0)
        matrix<<<pairs, 32, 0, stream>>>(pairs, len, a, b, score);
    return cudaGetLastError();
}
