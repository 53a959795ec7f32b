void inplace_diff(int *a, int n)
{
    int *p = a + n - 1;
    while (p > a) {
        *p = *p / 2 - p[-1] / 2;
        p--;
    }
}
