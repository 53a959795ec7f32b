#include <math.h>
int idamax(int n, const double *x)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (fabs(x[i]) > fabs(x[best]))
            best = i;
    return best;
}
