int after_loop(const int *a, int n, int *out)
{
    int i = n;
    while (i-- > 0)
        out[i] = a[i] + 1;
    return i;
}
