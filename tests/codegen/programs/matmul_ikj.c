#include <string.h>
/* accumulates in memory, loops in the order i, k, j */
void matmul_ikj(unsigned n, const double a[n][n], const double b[n][n], double c[n][n])
{
    memset(c, 0, sizeof(double) * n * n);
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k++) {
            const double aik = a[i][k];
            for (unsigned j = 0; j < n; j++)
                c[i][j] += aik * b[k][j];
        }
}
