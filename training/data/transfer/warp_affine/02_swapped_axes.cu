// threadIdx.x walks down the image
__global__ void warp_columns(int w, int h, const unsigned char *src, unsigned char *dst,
                             int xx, int xy, int x0, int yx, int yy, int y0)
{
    int y = threadIdx.x + blockIdx.x * blockDim.x;
    int x = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < w && y < h) {
        int sx = xx * x + xy * y + x0, sy = yx * x + yy * y + y0;
        int fx = (sx & 65535) >> 8, fy = (sy & 65535) >> 8;
        int l = min(max(sx >> 16, 0), w - 1), r = min(max((sx >> 16) + 1, 0), w - 1);
        int t = min(max(sy >> 16, 0), h - 1), b = min(max((sy >> 16) + 1, 0), h - 1);
        int up = src[t * w + l] * (256 - fx) + src[t * w + r] * fx;
        int lo = src[b * w + l] * (256 - fx) + src[b * w + r] * fx;
        dst[y * w + x] = (up * (256 - fy) + lo * fy + 32768) >> 16;
    }
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    dim3 threads(32, 8);
    dim3 blocks((h + 31) / 32, (w + 7) / 8);
    warp_columns<<<blocks, threads, 0, stream>>>(w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
