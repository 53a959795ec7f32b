int first_max(const double *v, int n)
{
    int best = n - 1;
    int i;
    for (i = n - 1; i >= 0; i--)
        if (v[i] >= v[best])
            best = i;
    return best;
}
