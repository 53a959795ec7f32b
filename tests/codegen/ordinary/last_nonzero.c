int last_nonzero(const int *v, int n)
{
    int at = -1;
    for (int i = 0; i < n; i++)
        if (v[i] != 0)
            at = i;
    return at;
}
