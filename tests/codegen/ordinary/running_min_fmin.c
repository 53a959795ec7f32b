#include <math.h>
void running_min(const float *x, float *y, int n)
{
    float m = INFINITY;
    for (int i = 0; i < n; i++) {
        m = fminf(m, x[i]);
        y[i] = m;
    }
}
