#include <stddef.h>
ptrdiff_t find_byte(const unsigned char *buf, size_t n, int c)
{
    const unsigned char *p = buf;
    const unsigned char *end = buf + n;
    while (p != end) {
        if (*p == (unsigned char)c)
            return p - buf;
        ++p;
    }
    return -1;
}
