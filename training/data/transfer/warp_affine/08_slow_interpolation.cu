// interpolates in double, one warp a block
__global__ void warp(int w, int h, const unsigned char *src, unsigned char *dst,
                     int xx, int xy, int x0, int yx, int yy, int y0)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y;
    if (x < w) {
        int sx = xx * x + xy * y + x0, sy = yx * x + yy * y + y0;
        double fx = ((sx & 65535) >> 8) / 256.0, fy = ((sy & 65535) >> 8) / 256.0;
        int l = min(max(sx >> 16, 0), w - 1), r = min(max((sx >> 16) + 1, 0), w - 1);
        int t = min(max(sy >> 16, 0), h - 1), b = min(max((sy >> 16) + 1, 0), h - 1);
        double upper = src[t * w + l] * (1.0 - fx) + src[t * w + r] * fx;
        double lower = src[b * w + l] * (1.0 - fx) + src[b * w + r] * fx;
        dst[y * w + x] = (unsigned char)floor(upper * (1.0 - fy) + lower * fy + 0.5);
    }
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    warp<<<dim3((w + 31) / 32, h), 32, 0, stream>>>(w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
