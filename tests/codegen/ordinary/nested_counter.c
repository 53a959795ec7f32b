int pairs(const int *a, int n, int *out)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            out[k] = a[i] * a[j] % 100;
            k++;
        }
    return k;
}
