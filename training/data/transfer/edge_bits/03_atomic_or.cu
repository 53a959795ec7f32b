// cleared words, then an atomic per edge pixel
__global__ void edges(int h, int w, int words, const unsigned char *img, int threshold, unsigned *bits)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * w)
        return;
    int y = i / w, x = i % w;
    if (y == 0 || y == h - 1 || x == 0 || x == w - 1)
        return;
    const unsigned char *p = img + i;
    int gx = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
    int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
    if (abs(gx) + abs(gy) > threshold)
        atomicOr(&bits[y * words + x / 32], 1u << (x % 32));
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    int words = (w + 31) / 32;
    cudaMemsetAsync(bits, 0, sizeof(unsigned) * h * words, stream);
    if (h > 0 && w > 0)
        edges<<<(h * w + 255) / 256, 256, 0, stream>>>(h, w, words, img, threshold, bits);
    return cudaGetLastError();
}
