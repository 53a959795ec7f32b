void split(const int *in, int n, int *even, int *odd)
{
    for (int i = 0; i < n; i++) {
        if (i % 2 == 0)
            *even++ = in[i];
        else
            *odd++ = in[i];
    }
}
