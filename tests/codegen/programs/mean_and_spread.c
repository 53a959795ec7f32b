#include <math.h>
/* cudaperf: in x[n]; out stats[2] */
void mean_and_spread(const float *x, int n, double *stats)
{
    double s = 0, s2 = 0;
    for (int i = 0; i < n; i++) {
        s += x[i];
        s2 += (double)x[i] * x[i];
    }
    stats[0] = n ? s / n : 0.0;
    stats[1] = s2;
}
