#include <stdint.h>

typedef uint16_t px;

/* 3 x 3 median in which the centre counts three times; the border is copied.
   cudaperf: in src[h*w]; out dst[h*w] */
void centre_median(int w, int h, const px *src, px *dst)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            px s[11];
            int n = 0;
            if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
                dst[y * w + x] = src[y * w + x];
                continue;
            }
            for (int k = 0; k < 11; k++) {
                px v = k < 9 ? src[(y + k / 3 - 1) * w + x + k % 3 - 1] : src[y * w + x];
                int at = n++;
                while (at > 0 && s[at - 1] > v) {
                    s[at] = s[at - 1];
                    at--;
                }
                s[at] = v;
            }
            dst[y * w + x] = s[5];
        }
}
