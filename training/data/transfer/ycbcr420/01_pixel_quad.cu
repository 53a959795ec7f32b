typedef unsigned char u8;

__global__ void convert(const u8 *rgb, int ch, int cw, u8 *luma, u8 *cb, u8 *cr)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= ch || j >= cw) return;
    int sr = 0, sg = 0, sb = 0;
    for (int dy = 0; dy < 2; dy++)
        for (int dx = 0; dx < 2; dx++) {
            int at = (2 * i + dy) * 2 * cw + 2 * j + dx;
            int r = rgb[3 * at], g = rgb[3 * at + 1], b = rgb[3 * at + 2];
            luma[at] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
            sr += r; sg += g; sb += b;
        }
    cb[i * cw + j] = (-11059 * sr - 21709 * sg + 32768 * sb + (128 << 18) + 131071) >> 18;
    cr[i * cw + j] = (32768 * sr - 27439 * sg - 5329 * sb + (128 << 18) + 131071) >> 18;
}

extern "C" int ycbcr420_device(const u8 *rgb, int ch, int cw, u8 *luma, u8 *cb, u8 *cr, cudaStream_t stream)
{
    if (ch <= 0 || cw <= 0) return 0;
    dim3 b(16, 16);
    convert<<<dim3((cw + 15) / 16, (ch + 15) / 16), b, 0, stream>>>(rgb, ch, cw, luma, cb, cr);
    return cudaGetLastError();
}
