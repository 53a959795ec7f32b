// one thread per output pixel, 16 x 16
__device__ int clampTo(int v, int top) { return v < 0 ? 0 : (v > top ? top : v); }

__global__ void warp(int w, int h, const unsigned char *src, unsigned char *dst,
                     int xx, int xy, int x0, int yx, int yy, int y0)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int sx = xx * x + xy * y + x0;
    int sy = yx * x + yy * y + y0;
    int fx = (sx & 65535) >> 8, fy = (sy & 65535) >> 8;
    int l = clampTo(sx >> 16, w - 1), r = clampTo((sx >> 16) + 1, w - 1);
    int t = clampTo(sy >> 16, h - 1), b = clampTo((sy >> 16) + 1, h - 1);
    int upper = src[t * w + l] * (256 - fx) + src[t * w + r] * fx;
    int lower = src[b * w + l] * (256 - fx) + src[b * w + r] * fx;
    dst[y * w + x] = (unsigned char)((upper * (256 - fy) + lower * fy + 32768) >> 16);
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    dim3 block(16, 16), grid((w + 15) / 16, (h + 15) / 16);
    warp<<<grid, block, 0, stream>>>(w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
