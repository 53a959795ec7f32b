int is_sorted(const double *v, int n)
{
    int ok = 1;
    for (int i = 0; i + 1 < n && ok; i++)
        if (v[i] > v[i + 1])
            ok = 0;
    return ok;
}
