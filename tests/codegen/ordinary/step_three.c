int every_third(const int *a, int n)
{
    int s = 0, i = 0;
    while (i < n) {
        s += a[i];
        i += 3;
    }
    return s + i;
}
