int count_beside(const int *a, int n, int m, int *out)
{
    int c = 0, s = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            s += a[i * m + j] % 100;
        c += 2;
    }
    out[0] = s;
    return c;
}
