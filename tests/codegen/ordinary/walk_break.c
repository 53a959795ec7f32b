int find_zero(const unsigned char *p, int n)
{
    const unsigned char *s = p;
    while (n-- > 0) {
        if (*s == 0)
            return (int)(s - p);
        s++;
    }
    return -1;
}
