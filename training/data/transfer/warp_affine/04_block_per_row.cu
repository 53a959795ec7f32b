// a block walks one row
__global__ void warpRow(int w, int h, const unsigned char *src, unsigned char *dst,
                        int xx, int xy, int x0, int yx, int yy, int y0)
{
    const int y = blockIdx.x;
    const int rowX = xy * y + x0, rowY = yy * y + y0;
    for (int x = threadIdx.x; x < w; x += blockDim.x) {
        int sx = xx * x + rowX, sy = yx * x + rowY;
        int fx = (sx & 65535) >> 8, fy = (sy & 65535) >> 8;
        sx >>= 16;
        sy >>= 16;
        int l = max(0, min(sx, w - 1)), r = max(0, min(sx + 1, w - 1));
        int t = max(0, min(sy, h - 1)), b = max(0, min(sy + 1, h - 1));
        int upper = src[t * w + l] * (256 - fx) + src[t * w + r] * fx;
        int lower = src[b * w + l] * (256 - fx) + src[b * w + r] * fx;
        dst[y * w + x] = (unsigned char)((upper * (256 - fy) + lower * fy + 32768) >> 16);
    }
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    warpRow<<<h, 1024, 0, stream>>>(w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
