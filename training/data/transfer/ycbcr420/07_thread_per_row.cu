__global__ void k(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb, unsigned char *cr)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ch)
        return;
    for (int j = 0; j < cw; j++) {
        int sr = 0, sg = 0, sb = 0;
        for (int q = 0; q < 4; q++) {
            int at = (2 * i + q / 2) * 2 * cw + 2 * j + q % 2;
            int r = rgb[3 * at], g = rgb[3 * at + 1], b = rgb[3 * at + 2];
            luma[at] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
            sr += r;
            sg += g;
            sb += b;
        }
        cb[i * cw + j] = (-11059 * sr - 21709 * sg + 32768 * sb + (128 << 18) + 131071) >> 18;
        cr[i * cw + j] = (32768 * sr - 27439 * sg - 5329 * sb + (128 << 18) + 131071) >> 18;
    }
}

extern "C" int ycbcr420_device(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb,
                               unsigned char *cr, cudaStream_t stream)
{
    if (ch > 0)
        k<<<(ch + 31) / 32, 32, 0, stream>>>(rgb, ch, cw, luma, cb, cr);
    return cudaGetLastError();
}
