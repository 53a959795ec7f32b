#define DEGREE 5
static const double coefficient[DEGREE + 1] = {1.0, -0.5, 0.25, -0.125, 0.0625, -0.03125};
void horner_table(const double *x, double *y, long n)
{
    long i;
    for (i = n - 1; i >= 0; i--) {
        double v = coefficient[DEGREE];
        for (int d = DEGREE - 1; d >= 0; d--)
            v = v * x[i] + coefficient[d];
        y[i] = v;
    }
}
