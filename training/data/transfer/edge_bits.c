#include <stdlib.h>

/* One bit a pixel: is the Sobel gradient above the threshold? Bit b of word k of a row is pixel 32*k + b.
 * Pixels on the border are no edges.
 * cudaperf: entry; w in 1..; in img[h*w]; threshold in 0..1500; out bits[h*((w+31)/32)]
 */
void edge_bits(int h, int w, const unsigned char *img, int threshold, unsigned *bits)
{
    int words = (w + 31) / 32;
    for (int y = 0; y < h; y++)
        for (int k = 0; k < words; k++) {
            unsigned word = 0;
            for (int b = 0; b < 32; b++) {
                int x = 32 * k + b;
                if (y == 0 || y == h - 1 || x == 0 || x >= w - 1)
                    continue;
                const unsigned char *p = img + y * w + x;
                int gx = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
                int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
                if (abs(gx) + abs(gy) > threshold)
                    word |= 1u << b;
            }
            bits[y * words + k] = word;
        }
}
