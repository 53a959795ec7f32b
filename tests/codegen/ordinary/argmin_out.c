void argmin_out(const double *v, int n, int *where, double *what)
{
    *where = 0;
    *what = v[0];
    for (int i = 1; i < n; i++) {
        if (v[i] < *what) {
            *what = v[i];
            *where = i;
        }
    }
}
