void suffix_sums(const int *a, long *s, int n)
{
    long t = 0;
    for (int i = n - 1; i >= 0; i--) {
        t += a[i];
        s[i] = t;
    }
}
