/* cudaperf: in x[n*m] */
void weighted(int n, int m, const int *x, int *y)
{
    int r = 0;
    while (n--) {
        int i = 1, k = 0, s = 0;
        for (i = i + 1; i < m; i++) {
            s += x[r * m + i] * k;
            k++;
        }
        *y++ = s;
        r++;
    }
}
