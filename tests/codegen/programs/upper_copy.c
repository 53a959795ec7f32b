/* cudaperf: in a[n*n]; inout b[n*n] */
void upper_copy(const int *a, int *b, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++)
            b[j * n + i] = a[i * n + j] - 1;
}
