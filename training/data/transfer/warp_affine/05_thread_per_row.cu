// every thread does a whole row
__global__ void rows(int w, int h, const unsigned char *src, unsigned char *dst,
                     int xx, int xy, int x0, int yx, int yy, int y0)
{
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y < h) {
        int sx = xy * y + x0, sy = yy * y + y0;
        for (int x = 0; x < w; x++) {
            int fx = (sx & 65535) >> 8, fy = (sy & 65535) >> 8;
            int l = min(max(sx >> 16, 0), w - 1), r = min(max((sx >> 16) + 1, 0), w - 1);
            int t = min(max(sy >> 16, 0), h - 1), b = min(max((sy >> 16) + 1, 0), h - 1);
            int upper = src[t * w + l] * (256 - fx) + src[t * w + r] * fx;
            int lower = src[b * w + l] * (256 - fx) + src[b * w + r] * fx;
            dst[y * w + x] = (unsigned char)((upper * (256 - fy) + lower * fy + 32768) >> 16);
            sx += xx;
            sy += yx;
        }
    }
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    rows<<<(h + 63) / 64, 64, 0, stream>>>(w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
