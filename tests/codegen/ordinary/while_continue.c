int while_continue(const int *a, int n)
{
    int i = -1, s = 0;
    while (++i < n) {
        if (a[i] < 0)
            continue;
        s += a[i] % 1000;
    }
    return s + i;
}
