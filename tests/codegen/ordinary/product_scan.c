void powers(unsigned *out, int n, unsigned base)
{
    unsigned p = 1;
    for (int i = 0; i < n; i++) {
        out[i] = p;
        p *= base;
    }
}
