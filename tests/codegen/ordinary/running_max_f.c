void running_max_f(const double *in, double *out, int n)
{
    double m = in[0];
    for (int i = 0; i < n; i++) {
        m = in[i] > m ? in[i] : m;
        out[i] = m;
    }
}
