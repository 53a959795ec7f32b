#include <stddef.h>
void daxpy_walk(int n, double alpha, const double *x, double *y)
{
    while (n--) {
        *y++ += alpha * *x++;
    }
}
