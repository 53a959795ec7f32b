#include <stdint.h>
void swap32(uint32_t *v, unsigned n)
{
    uint32_t *p = v;
    while (n > 0) {
        uint32_t x = *p;
        *p++ = (x >> 24) | ((x >> 8) & 0xff00) | ((x << 8) & 0xff0000) | (x << 24);
        --n;
    }
}
