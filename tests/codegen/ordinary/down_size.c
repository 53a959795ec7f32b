#include <stddef.h>
void reverse_into(const float *src, float *dst, size_t n)
{
    size_t i = n;
    while (i-- > 0)
        dst[n - 1 - i] = src[i];
}
