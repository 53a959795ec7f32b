#include <stdlib.h>
void sobel(const unsigned char *in, unsigned char *out, int w, int h)
{
    static const int kx[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
    static const int ky[3][3] = {{-1, -2, -1}, {0, 0, 0}, {1, 2, 1}};
    for (int y = 1; y < h - 1; y++) {
        for (int x = 1; x < w - 1; x++) {
            int gx = 0, gy = 0;
            for (int j = -1; j <= 1; j++)
                for (int i = -1; i <= 1; i++) {
                    int p = in[(y + j) * w + (x + i)];
                    gx += kx[j + 1][i + 1] * p;
                    gy += ky[j + 1][i + 1] * p;
                }
            int g = abs(gx) + abs(gy);
            out[y * w + x] = g > 255 ? 255 : g;
        }
    }
}
