/* Highest value so far. cudaperf: in x[n]; out best[n] */
void prefix_max(const int *x, int *best, int n)
{
    int top = -2147483647 - 1;
    for (int i = 0; i < n; i++) {
        if (x[i] > top)
            top = x[i];
        best[i] = top;
    }
}
