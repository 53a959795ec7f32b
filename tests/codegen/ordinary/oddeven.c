void odd_even_sort(int *a, int n)
{
    for (int pass = 0; pass < n; pass++)
        for (int i = pass % 2; i + 1 < n; i += 2)
            if (a[i] > a[i + 1]) {
                int t = a[i];
                a[i] = a[i + 1];
                a[i + 1] = t;
            }
}
