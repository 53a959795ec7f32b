// a block of 64 per pair: thread i is row i, diagonals by barrier, three diagonals in shared memory
__global__ void wavefront(int pairs, int len, const signed char *a, const signed char *b, int *score)
{
    __shared__ int d[3][65];
    __shared__ int top;
    int p = blockIdx.x, i = threadIdx.x;
    for (int k = 0; k < 3; k++)
        d[k][i + 1] = 0;
    if (i == 0)
        d[0][0] = d[1][0] = d[2][0] = top = 0;
    __syncthreads();
    int best = 0;
    for (int t = 0; t < 2 * len - 1; t++) {
        int j = t - i;
        int *now = d[t % 3], *last = d[(t + 2) % 3], *before = d[(t + 1) % 3];
        if (i < len && j >= 0 && j < len) {
            int diag = j > 0 ? before[i] : 0;
            int left = j > 0 ? last[i + 1] : 0;
            int h = max(0, max(diag + (a[p * len + i] == b[p * len + j] ? 2 : -1), max(last[i], left) - 2));
            now[i + 1] = h;
            best = max(best, h);
        }
        __syncthreads();
    }
    atomicMax(&top, best);
    __syncthreads();
    if (i == 0)
        score[p] = top;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs > 0)
        wavefront<<<pairs, 64, 0, stream>>>(pairs, len, a, b, score);
    return cudaGetLastError();
}
