/* cudaperf: in x[n]; out centred[n]; n in 1..2000 */
double two_pass_variance(const double *x, double *centred, int n)
{
    int i;
    double mean = 0, var = 0;
    for (i = 0; i < n; ++i)
        mean += x[i];
    mean /= n;
    for (i = 0; i < n; ++i) {
        centred[i] = x[i] - mean;
        var += centred[i] * centred[i];
    }
    return var / n;
}
