int sum_skip(const int *a, int n)
{
    int s = 0, j = n - 1;
    for (int i = 0; i < n; i++, j--) {
        if (a[i] % 3 == 0)
            continue;
        s += a[i] % 100 - a[j] % 100;
    }
    return s;
}
