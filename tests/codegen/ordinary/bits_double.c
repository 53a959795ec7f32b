#include <stdint.h>
#include <string.h>
void exponent(const double *x, int *e, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, x + i, sizeof(bits));
        e[i] = (int)((bits >> 52) & 0x7ff) - 1023;
    }
}
