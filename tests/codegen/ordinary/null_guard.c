#include <stddef.h>
void scale(float *x, int n, float a)
{
    if (x == NULL || n <= 0)
        return;
    for (int i = 0; i < n; i++)
        x[i] *= a;
}
