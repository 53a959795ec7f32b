// one thread a pixel; chroma sums meet by shuffles between the 16 x 2 lanes of a warp
__global__ void pixel(const unsigned char *__restrict__ rgb, int ch, int cw, unsigned char *__restrict__ luma,
                      unsigned char *__restrict__ cb, unsigned char *__restrict__ cr)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    bool inside = x < 2 * cw && y < 2 * ch;
    int r = 0, g = 0, b = 0;
    if (inside) {
        const unsigned char *p = rgb + 3 * (y * 2 * cw + x);
        r = p[0], g = p[1], b = p[2];
        luma[y * 2 * cw + x] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
    }
    int u = -11059 * r - 21709 * g + 32768 * b, v = 32768 * r - 27439 * g - 5329 * b;
    u += __shfl_xor_sync(0xffffffffu, u, 1);
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    u += __shfl_xor_sync(0xffffffffu, u, 16);
    v += __shfl_xor_sync(0xffffffffu, v, 16);
    if (inside && !(x & 1) && !(y & 1)) {
        int at = y / 2 * cw + x / 2;
        cb[at] = (u + (128 << 18) + 131071) >> 18;
        cr[at] = (v + (128 << 18) + 131071) >> 18;
    }
}

extern "C" int ycbcr420_device(const unsigned char *rgb, int ch, int cw, unsigned char *luma, unsigned char *cb,
                               unsigned char *cr, cudaStream_t stream)
{
    if (!ch || !cw)
        return cudaSuccess;
    pixel<<<dim3((2 * cw + 15) / 16, (2 * ch + 15) / 16), dim3(16, 16), 0, stream>>>(rgb, ch, cw, luma, cb, cr);
    return cudaGetLastError();
}
