static int high(const unsigned char *p, int n)
{
    int c = 0;
    for (int i = 0; i < n; i++)
        c += p[i] > 127;
    return c;
}
void count_high(const char *text, int rows, int len, int *out)
{
    for (int r = 0; r < rows; r++)
        out[r] = high((const unsigned char *)text + r * len, len);
}
