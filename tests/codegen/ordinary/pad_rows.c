#include <string.h>
void pad_rows(const unsigned char *src, unsigned char *dst, int w, int h, int pitch)
{
    if (pitch < w)
        return;
    while (h--) {
        memcpy(dst, src, w);
        src += w;
        dst += pitch;
    }
}
