// cudaperf: inout d[n*n] in -3..1000; n in 0..9
static int least(int a, int b) { return a < b ? a : b; }
void shortest_negative(int *d, int n)
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                d[i * n + j] = least(d[i * n + j], d[i * n + k] + d[k * n + j]);
}
