void shifted(int from, unsigned m, const int *x, int *y)
{
    for (int i = from; i < m; i++)
        y[i] = x[i];
}
