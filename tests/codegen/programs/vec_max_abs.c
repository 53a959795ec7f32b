#include <math.h>
/* C89 style: declarations first, index reused */
double vec_max_abs(const double *v, int n)
{
    int i;
    double best = 0.0, t;
    for (i = 0; i < n; i++) {
        t = fabs(v[i]);
        if (t > best)
            best = t;
    }
    return best;
}
