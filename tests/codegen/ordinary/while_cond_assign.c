int sum_until_zero(const int *v, int n)
{
    int s = 0, i = 0, x;
    while (i < n && (x = v[i]) != 0) {
        s += x;
        i++;
    }
    return s;
}
