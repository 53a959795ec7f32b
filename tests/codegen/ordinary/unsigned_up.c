void up(unsigned n, const unsigned *a, unsigned *b)
{
    unsigned i = 0;
    while (i != n) {
        b[i] = a[i] >> 1;
        ++i;
    }
}
