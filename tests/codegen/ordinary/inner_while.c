void row_max(const int *m, int rows, int cols, int *out)
{
    const int *p = m;
    int r = rows;
    while (r--) {
        int c = cols;
        int best = -1000000;
        while (c--) {
            if (*p > best)
                best = *p;
            p++;
        }
        *out++ = best;
    }
}
