#include <stdint.h>
void fast_rsqrt(const float *in, float *out, int n)
{
    for (int i = 0; i < n; i++) {
        union { float f; uint32_t u; } c;
        c.f = in[i];
        c.u = 0x5f3759dfu - (c.u >> 1);
        out[i] = c.f * (1.5f - 0.5f * in[i] * c.f * c.f);
    }
}
