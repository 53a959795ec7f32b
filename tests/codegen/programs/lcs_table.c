/* cudaperf: in a[m]; in b[n]; inout t[(m+1)*(n+1)] in 0..0 */
int lcs_table(const char *a, int m, const char *b, int n, int *t)
{
    int w = n + 1;
    for (int i = 1; i <= m; i++)
        for (int j = 1; j <= n; j++)
            if (a[i - 1] == b[j - 1])
                t[i * w + j] = t[(i - 1) * w + (j - 1)] + 1;
            else
                t[i * w + j] = t[(i - 1) * w + j] > t[i * w + j - 1] ? t[(i - 1) * w + j] : t[i * w + j - 1];
    return t[m * w + n];
}
