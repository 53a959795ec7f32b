void minmax(const float *v, int n, float *lo, float *hi)
{
    *lo = v[0];
    *hi = v[0];
    for (int i = 1; i < n; i++) {
        if (v[i] < *lo)
            *lo = v[i];
        if (v[i] > *hi)
            *hi = v[i];
    }
}
