void mirror(const int *a, int *b, int n)
{
    const int *p = a + n;
    while (p > a)
        *b++ = *--p;
}
