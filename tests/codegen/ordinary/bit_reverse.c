#include <stdint.h>
void bit_reverse(uint8_t *v, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t b = v[i], r = 0;
        for (int k = 8; k--;) {
            r = (uint8_t)((r << 1) | (b & 1));
            b >>= 1;
        }
        v[i] = r;
    }
}
