// a block stages 64 chroma columns of two luma rows: bytes come in side by side
#define COLS 64

__global__ void staged(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb,
                       unsigned char *cr)
{
    __shared__ unsigned char in[2][COLS * 2 * 3];
    int i = blockIdx.y, first = blockIdx.x * COLS;
    int cols = min(COLS, cw - first);
    for (int dy = 0; dy < 2; dy++)
        for (int k = threadIdx.x; k < cols * 6; k += COLS)
            in[dy][k] = rgb[((2 * i + dy) * 2 * cw + 2 * first) * 3 + k];
    __syncthreads();
    int t = threadIdx.x;
    if (t < cols) {
        int sr = 0, sg = 0, sb = 0;
        for (int dy = 0; dy < 2; dy++)
            for (int dx = 0; dx < 2; dx++) {
                int r = in[dy][6 * t + 3 * dx], g = in[dy][6 * t + 3 * dx + 1], b = in[dy][6 * t + 3 * dx + 2];
                luma[(2 * i + dy) * 2 * cw + 2 * (first + t) + dx] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
                sr += r;
                sg += g;
                sb += b;
            }
        cb[i * cw + first + t] = (-11059 * sr - 21709 * sg + 32768 * sb + (128 << 18) + 131071) >> 18;
        cr[i * cw + first + t] = (32768 * sr - 27439 * sg - 5329 * sb + (128 << 18) + 131071) >> 18;
    }
}

extern "C" int ycbcr420_device(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb,
                               unsigned char *cr, cudaStream_t stream)
{
    if (ch > 0 && cw > 0)
        staged<<<dim3((cw + COLS - 1) / COLS, ch), COLS, 0, stream>>>(rgb, ch, cw, luma, cb, cr);
    return cudaGetLastError();
}
