// a warp per pair: a lane has rows 2k and 2k + 1, neighbours' values arrive by shuffles
__global__ void __launch_bounds__(128) warps(int pairs, int len, const signed char *__restrict__ a,
                                             const signed char *__restrict__ b, int *__restrict__ score)
{
    const unsigned all = 0xffffffffu;
    const int p = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (p >= pairs) return;
    const signed char *pa = a + p * len, *pb = b + p * len;
    const int r0 = 2 * lane, r1 = r0 + 1;
    const int c0 = r0 < len ? pa[r0] : -1, c1 = r1 < len ? pa[r1] : -1;
    int h0 = 0, h1 = 0, up_diag = 0, best = 0;
    for (int t = 0; t < len + 31; ++t) {
        const int j = t - lane;
        int up = __shfl_up_sync(all, h1, 1);
        if (lane == 0) up = 0;
        if (j >= 0 && j < len) {
            const int c = pb[j];
            const int n0 = max(max(0, up_diag + (c0 == c ? 2 : -1)), max(up, h0) - 2);
            const int n1 = max(max(0, h0 + (c1 == c ? 2 : -1)), max(n0, h1) - 2);
            if (r0 < len) best = max(best, n0);
            if (r1 < len) best = max(best, n1);
            up_diag = up;
            h0 = n0;
            h1 = n1;
        }
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) best = max(best, __shfl_xor_sync(all, best, m));
    if (lane == 0) score[p] = best;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs > 0)
        warps<<<(pairs + 3) / 4, dim3(32, 4), 0, stream>>>(pairs, len, a, b, score);
    return cudaGetLastError();
}
