void merge_ends(const int *a, int *b, int n)
{
    int i, j;
    for (i = 0, j = n - 1; i < n; i++, j--)
        b[i] = a[i] + a[j];
}
