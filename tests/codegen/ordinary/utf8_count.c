#include <stddef.h>
size_t utf8_count(const char *s, size_t bytes)
{
    size_t n = 0;
    const unsigned char *p = (const unsigned char *)s;
    for (size_t i = 0; i < bytes; i++)
        if ((p[i] & 0xC0) != 0x80)
            n++;
    return n;
}
