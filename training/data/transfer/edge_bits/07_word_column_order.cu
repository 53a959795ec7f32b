// a thread per word, threads of a warp one below the other
__global__ void edges(int h, int w, int words, const unsigned char *img, int threshold, unsigned *bits)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * words)
        return;
    int y = i % h, k = i / h;
    unsigned word = 0;
    if (y > 0 && y < h - 1)
        for (int x = max(32 * k, 1); x < min(32 * k + 32, w - 1); x++) {
            const unsigned char *p = img + y * w + x;
            int gx = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
            int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
            word |= (unsigned)(abs(gx) + abs(gy) > threshold) << (x & 31);
        }
    bits[y * words + k] = word;
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    int words = (w + 31) / 32, n = h * words;
    if (n > 0)
        edges<<<(n + 127) / 128, 128, 0, stream>>>(h, w, words, img, threshold, bits);
    return cudaGetLastError();
}
