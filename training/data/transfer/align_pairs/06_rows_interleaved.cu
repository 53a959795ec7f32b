// as with rows in global memory, but row j of all pairs lies together; letters transposed first
__global__ void turn(int pairs, int len, const signed char *in, signed char *out)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < pairs * len)
        out[k % len * pairs + k / len] = in[k];
}

__global__ void align(int pairs, int len, const signed char *a, const signed char *b, int *score, short *rows)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pairs)
        return;
    for (int j = 0; j <= len; j++)
        rows[(size_t)j * pairs + p] = 0;
    int best = 0;
    for (int i = 0; i < len; i++) {
        int diag = 0, left = 0, letter = a[i * pairs + p];
        for (int j = 1; j <= len; j++) {
            int up = rows[(size_t)j * pairs + p];
            int h = max(0, max(diag + (b[(j - 1) * pairs + p] == letter ? 2 : -1), max(up, left) - 2));
            rows[(size_t)j * pairs + p] = h;
            diag = up;
            left = h;
            best = max(best, h);
        }
    }
    score[p] = best;
}

extern "C" int align_pairs_device(int pairs, int len, const signed char *a, const signed char *b, int *score, cudaStream_t stream)
{
    if (pairs <= 0)
        return 0;
    signed char *letters;
    short *rows;
    int n = pairs * len;
    cudaMallocAsync((void **)&letters, 2 * n, stream);
    cudaMallocAsync((void **)&rows, sizeof(short) * 65 * pairs, stream);
    turn<<<(n + 255) / 256, 256, 0, stream>>>(pairs, len, a, letters);
    turn<<<(n + 255) / 256, 256, 0, stream>>>(pairs, len, b, letters + n);
    align<<<(pairs + 63) / 64, 64, 0, stream>>>(pairs, len, letters, letters + n, score, rows);
    cudaFreeAsync(letters, stream);
    cudaFreeAsync(rows, stream);
    return cudaGetLastError();
}
