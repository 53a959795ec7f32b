typedef unsigned short px;
/* cudaperf: in src[h*w]; out dst[h*w] */
void flip_rows(const px *src, px *dst, int w, int h)
{
    for (int y = 0; y < h; y++) {
        const px *from = src + (long)y * w;
        px *to = dst + (long)y * w;
        for (int x = 0; x < w; x++)
            to[w - 1 - x] = from[x];
    }
}
