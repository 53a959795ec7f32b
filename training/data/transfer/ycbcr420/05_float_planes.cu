// first splits into planes of int, then converts from the planes
__global__ void split(const unsigned char *rgb, int n, int *r, int *g, int *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        r[i] = rgb[3 * i];
        g[i] = rgb[3 * i + 1];
        b[i] = rgb[3 * i + 2];
    }
}

__global__ void to_luma(const int *r, const int *g, const int *b, int n, unsigned char *luma)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        luma[i] = (19595 * r[i] + 38470 * g[i] + 7471 * b[i] + 32768) >> 16;
}

__global__ void to_chroma(const int *r, const int *g, const int *b, int ch, int cw, unsigned char *cb,
                          unsigned char *cr)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < ch * cw) {
        int at = k / cw * 4 * cw + k % cw * 2, w = 2 * cw;
        int sr = r[at] + r[at + 1] + r[at + w] + r[at + w + 1];
        int sg = g[at] + g[at + 1] + g[at + w] + g[at + w + 1];
        int sb = b[at] + b[at + 1] + b[at + w] + b[at + w + 1];
        cb[k] = (-11059 * sr - 21709 * sg + 32768 * sb + (128 << 18) + 131071) >> 18;
        cr[k] = (32768 * sr - 27439 * sg - 5329 * sb + (128 << 18) + 131071) >> 18;
    }
}

extern "C" int ycbcr420_device(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb,
                               unsigned char *cr, cudaStream_t stream)
{
    int n = 4 * ch * cw;
    if (n == 0)
        return 0;
    int *planes;
    int err = cudaMallocAsync((void **)&planes, 3 * (size_t)n * sizeof(int), stream);
    if (err)
        return err;
    int *r = planes, *g = planes + n, *b = planes + 2 * (size_t)n;
    split<<<(n + 127) / 128, 128, 0, stream>>>(rgb, n, r, g, b);
    to_luma<<<(n + 127) / 128, 128, 0, stream>>>(r, g, b, n, luma);
    to_chroma<<<(n / 4 + 127) / 128, 128, 0, stream>>>(r, g, b, ch, cw, cb, cr);
    cudaFreeAsync(planes, stream);
    return cudaGetLastError();
}
