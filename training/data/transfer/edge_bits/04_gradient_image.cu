// gradient magnitude to memory, mask to memory, bits last
__global__ void gradient(int h, int w, const unsigned char *img, int *mag)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w)
        return;
    int m = -1;
    if (y > 0 && y < h - 1 && x > 0 && x < w - 1) {
        const unsigned char *p = img + y * w + x;
        int gx = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
        int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
        m = abs(gx) + abs(gy);
    }
    mag[y * w + x] = m;
}

__global__ void compare(int n, const int *mag, int threshold, unsigned char *mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        mask[i] = mag[i] > threshold;
}

__global__ void pack(int h, int w, int words, const unsigned char *mask, unsigned *bits)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h * words)
        return;
    int y = i / words, k = i % words;
    unsigned word = 0;
    for (int b = 0; b < 32 && 32 * k + b < w; b++)
        word |= (unsigned)mask[y * w + 32 * k + b] << b;
    bits[i] = word;
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    int words = (w + 31) / 32, n = h * w;
    if (n <= 0)
        return 0;
    int *mag;
    unsigned char *mask;
    cudaMallocAsync((void **)&mag, sizeof(int) * n, stream);
    cudaMallocAsync((void **)&mask, n, stream);
    gradient<<<dim3((w + 127) / 128, h), 128, 0, stream>>>(h, w, img, mag);
    compare<<<(n + 127) / 128, 128, 0, stream>>>(n, mag, threshold, mask);
    pack<<<(h * words + 127) / 128, 128, 0, stream>>>(h, w, words, mask, bits);
    cudaFreeAsync(mag, stream);
    cudaFreeAsync(mask, stream);
    return cudaGetLastError();
}
