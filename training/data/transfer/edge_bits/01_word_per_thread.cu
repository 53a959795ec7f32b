// one thread per output word
__global__ void edges(int h, int w, int words, const unsigned char *img, int threshold, unsigned *bits)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (k >= words || y >= h)
        return;
    unsigned word = 0;
    for (int b = 0; b < 32; b++) {
        int x = 32 * k + b;
        if (y == 0 || y == h - 1 || x == 0 || x >= w - 1)
            continue;
        const unsigned char *p = img + y * w + x;
        int gx = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
        int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
        if (abs(gx) + abs(gy) > threshold)
            word |= 1u << b;
    }
    bits[y * words + k] = word;
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    int words = (w + 31) / 32;
    if (h > 0 && w > 0)
        edges<<<dim3((words + 15) / 16, (h + 15) / 16), dim3(16, 16), 0, stream>>>(h, w, words, img, threshold, bits);
    return cudaGetLastError();
}
