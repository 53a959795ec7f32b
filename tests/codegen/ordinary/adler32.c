#include <stdint.h>
uint32_t adler32(const unsigned char *data, int len)
{
    uint32_t a = 1, b = 0;
    for (int i = 0; i < len; ++i) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return (b << 16) | a;
}
