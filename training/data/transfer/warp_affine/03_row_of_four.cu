// four neighbouring pixels a thread; the row part of the transform is hoisted
__device__ __forceinline__ unsigned sample(const unsigned char *__restrict__ src, int w, int h, int sx, int sy)
{
    const int fx = (sx & 65535) >> 8, fy = (sy & 65535) >> 8;
    const int l = min(max(sx >> 16, 0), w - 1), r = min(max((sx >> 16) + 1, 0), w - 1);
    const unsigned char *top = src + min(max(sy >> 16, 0), h - 1) * w;
    const unsigned char *bottom = src + min(max((sy >> 16) + 1, 0), h - 1) * w;
    const int upper = __ldg(top + l) * (256 - fx) + __ldg(top + r) * fx;
    const int lower = __ldg(bottom + l) * (256 - fx) + __ldg(bottom + r) * fx;
    return (upper * (256 - fy) + lower * fy + 32768) >> 16;
}

__global__ void __launch_bounds__(128) warp4(int w, int h, const unsigned char *__restrict__ src,
    unsigned char *__restrict__ dst, int xx, int xy, int x0, int yx, int yy, int y0)
{
    const int x = 4 * (blockIdx.x * 32 + threadIdx.x);
    const int y = blockIdx.y * 4 + threadIdx.y;
    if (x >= w || y >= h) return;
    int sx = xx * x + xy * y + x0, sy = yx * x + yy * y + y0;
    if (x + 4 <= w && (w & 3) == 0) {
        uchar4 out;
        out.x = sample(src, w, h, sx, sy);
        out.y = sample(src, w, h, sx + xx, sy + yx);
        out.z = sample(src, w, h, sx + 2 * xx, sy + 2 * yx);
        out.w = sample(src, w, h, sx + 3 * xx, sy + 3 * yx);
        reinterpret_cast<uchar4 *>(dst)[(y * w + x) >> 2] = out;
    } else {
        for (int k = 0; k < 4 && x + k < w; ++k, sx += xx, sy += yx)
            dst[y * w + x + k] = sample(src, w, h, sx, sy);
    }
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    const dim3 block(32, 4);
    const dim3 grid((w + 127) / 128, (h + 3) / 4);
    warp4<<<grid, block, 0, stream>>>(w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
