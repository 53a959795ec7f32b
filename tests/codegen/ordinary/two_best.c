void two_best(const float *v, int n, int *lo, int *hi)
{
    int a = 0, b = 0;
    for (int i = 1; i < n; i++) {
        if (v[i] < v[a]) a = i;
        if (v[i] > v[b]) b = i;
    }
    *lo = a;
    *hi = b;
}
