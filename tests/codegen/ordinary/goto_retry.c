int first_negative(const int *v, int n)
{
    int i = 0;
again:
    if (i >= n)
        return -1;
    if (v[i] < 0)
        return i;
    i++;
    goto again;
}
