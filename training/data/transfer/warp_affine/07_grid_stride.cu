__device__ inline int lim(int v, int n) { return v < 0 ? 0 : v < n ? v : n - 1; }

__global__ void warp(long n, int w, int h, const unsigned char *__restrict__ src, unsigned char *__restrict__ dst,
                     int xx, int xy, int x0, int yx, int yy, int y0)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
        int y = i / w, x = i - (long)y * w;
        int sx = xx * x + xy * y + x0, sy = yx * x + yy * y + y0;
        int fx = sx >> 8 & 255, fy = sy >> 8 & 255;
        sx >>= 16, sy >>= 16;
        const unsigned char *p = src + lim(sy, h) * w, *q = src + lim(sy + 1, h) * w;
        int l = lim(sx, w), r = lim(sx + 1, w);
        int u = p[l] * (256 - fx) + p[r] * fx, d = q[l] * (256 - fx) + q[r] * fx;
        dst[i] = u * (256 - fy) + d * fy + 32768 >> 16;
    }
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    long n = (long)w * h;
    int blocks = (int)min((n + 511) / 512, 264L);
    warp<<<blocks, 512, 0, stream>>>(n, w, h, src, dst, xx, xy, x0, yx, yy, y0);
    return cudaGetLastError();
}
