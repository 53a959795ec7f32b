void prefix_max(int *a, int n)
{
    for (int i = 1; i < n; i++)
        if (a[i] < a[i - 1])
            a[i] = a[i - 1];
}
