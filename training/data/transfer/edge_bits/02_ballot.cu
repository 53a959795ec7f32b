// one thread per pixel, the warp votes
__global__ void edges(int h, int w, int words, const unsigned char *__restrict__ img, int threshold,
                      unsigned *__restrict__ bits)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y >= h)
        return;
    bool edge = false;
    if (y > 0 && y < h - 1 && x > 0 && x < w - 1) {
        const unsigned char *a = img + (y - 1) * w + x, *b = a + w, *c = b + w;
        int gx = a[1] + 2 * b[1] + c[1] - a[-1] - 2 * b[-1] - c[-1];
        int gy = c[-1] + 2 * c[0] + c[1] - a[-1] - 2 * a[0] - a[1];
        edge = abs(gx) + abs(gy) > threshold;
    }
    unsigned word = __ballot_sync(0xffffffffu, edge);
    if (threadIdx.x == 0)
        bits[y * words + blockIdx.x] = word;
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    int words = (w + 31) / 32;
    if (h > 0 && words > 0)
        edges<<<dim3(words, (h + 7) / 8), dim3(32, 8), 0, stream>>>(h, w, words, img, threshold, bits);
    return cudaGetLastError();
}
