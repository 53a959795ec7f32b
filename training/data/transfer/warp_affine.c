static int clamp(int v, int top)
{
    return v < 0 ? 0 : v > top ? top : v;
}

/* Affine warp of a grey image: 16.16 fixed point, bilinear, borders clamped.
 * cudaperf: entry; w in 1..8192; h in 1..8192; in src[w*h]; out dst[w*h]
 * cudaperf: xx in 40000..90000; xy in -20000..20000; x0 in -1000000..1000000
 * cudaperf: yx in -20000..20000; yy in 40000..90000; y0 in -1000000..1000000
 */
void warp_affine(int w, int h, const unsigned char *src, unsigned char *dst,
                 int xx, int xy, int x0, int yx, int yy, int y0)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int sx = xx * x + xy * y + x0;
            int sy = yx * x + yy * y + y0;
            int fx = (sx & 65535) >> 8, fy = (sy & 65535) >> 8;
            int l = clamp(sx >> 16, w - 1), r = clamp((sx >> 16) + 1, w - 1);
            int t = clamp(sy >> 16, h - 1), b = clamp((sy >> 16) + 1, h - 1);
            int upper = src[t * w + l] * (256 - fx) + src[t * w + r] * fx;
            int lower = src[b * w + l] * (256 - fx) + src[b * w + r] * fx;
            dst[y * w + x] = (unsigned char)((upper * (256 - fy) + lower * fy + 32768) >> 16);
        }
}
