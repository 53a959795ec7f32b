#include <stdint.h>

/* Full-range JPEG YCbCr with 4:2:0 chroma, from interleaved RGB. The picture is 2*ch rows of 2*cw pixels. */
/* cudaperf: in rgb[12*ch*cw]; out luma[4*ch*cw]; out cb[ch*cw]; out cr[ch*cw] */
void ycbcr420(const uint8_t *rgb, int ch, int cw, uint8_t *luma, uint8_t *cb, uint8_t *cr)
{
    int i, j, dy, dx;
    for (i = 0; i < ch; i++) {
        for (j = 0; j < cw; j++) {
            int sr = 0, sg = 0, sb = 0;
            for (dy = 0; dy < 2; dy++) {
                for (dx = 0; dx < 2; dx++) {
                    int at = (2 * i + dy) * 2 * cw + 2 * j + dx;
                    int r = rgb[3 * at], g = rgb[3 * at + 1], b = rgb[3 * at + 2];
                    luma[at] = (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
                    sr += r;
                    sg += g;
                    sb += b;
                }
            }
            cb[i * cw + j] = (uint8_t)((-11059 * sr - 21709 * sg + 32768 * sb + (128 << 18) + 131071) >> 18);
            cr[i * cw + j] = (uint8_t)((32768 * sr - 27439 * sg - 5329 * sb + (128 << 18) + 131071) >> 18);
        }
    }
}
