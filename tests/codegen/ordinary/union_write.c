#include <stdint.h>
typedef union { uint32_t u; float f; int32_t i; } Bits;
void scale_pow2(float *x, int n, int e)
{
    for (int k = 0; k < n; k++) {
        Bits b = {.f = x[k]};
        if ((b.u & 0x7f800000u) != 0)
            b.i += (e & 3) << 23;
        x[k] = b.f;
    }
}
