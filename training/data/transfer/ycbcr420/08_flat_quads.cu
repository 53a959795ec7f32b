// flat grid over chroma samples, 32-bit index arithmetic, two-byte luma stores
__global__ void quads(const unsigned char *__restrict__ rgb, unsigned n, unsigned cw, uchar2 *__restrict__ luma,
                      unsigned char *__restrict__ cb, unsigned char *__restrict__ cr)
{
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
        unsigned i = k / cw, j = k - i * cw;
        int u = (128 << 18) + 131071, v = u;
#pragma unroll
        for (int dy = 0; dy < 2; dy++) {
            unsigned pair = (2 * i + dy) * cw + j;
            const unsigned char *p = rgb + 6 * (size_t)pair;
            int y[2];
#pragma unroll
            for (int dx = 0; dx < 2; dx++) {
                int r = p[3 * dx], g = p[3 * dx + 1], b = p[3 * dx + 2];
                y[dx] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
                u += -11059 * r - 21709 * g + 32768 * b;
                v += 32768 * r - 27439 * g - 5329 * b;
            }
            luma[pair] = make_uchar2(y[0], y[1]);
        }
        cb[k] = u >> 18;
        cr[k] = v >> 18;
    }
}

extern "C" int ycbcr420_device(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb,
                               unsigned char *cr, cudaStream_t stream)
{
    unsigned n = (unsigned)ch * cw;
    if (n == 0)
        return cudaSuccess;
    unsigned blocks = (n + 255) / 256;
    quads<<<blocks < 2112 ? blocks : 2112, 256, 0, stream>>>(rgb, n, cw, (uchar2 *)luma, cb, cr);
    return cudaGetLastError();
}
