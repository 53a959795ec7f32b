int length_of(const char *s, int max)
{
    int n = 0;
    while (n < max && s[n])
        n++;
    return n;
}
