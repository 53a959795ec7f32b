void shift_up(unsigned n, int *a, const int *b)
{
    for (unsigned i = n; i-- > 0;)
        a[i] = b[i] * 2 + 1;
}
