#include <math.h>
/* power iteration: matrix-vector products, a norm, and a loop that the norm may end */
/* cudaperf: in a[n*n] in 0..1; inout v[n] in 1..2; inout w[n]; turns in 0..4 */
double dominant_eigen(int n, int turns, const double *a, double *v, double *w)
{
    double norm = 0.0;
    int turn = 0;
    while (turn < turns) {
        double sum = 0.0;
        for (int i = 0; i < n; i++) {
            double s = 0.0;
            for (int j = 0; j < n; j++)
                s += a[i * n + j] * v[j];
            w[i] = s;
        }
        for (int i = 0; i < n; i++)
            sum += w[i] * w[i];
        norm = sqrt(sum);
        if (norm == 0.0)
            break;
        for (int i = 0; i < n; i++)
            v[i] = w[i] / norm;
        turn++;
    }
    return norm;
}
