/* cudaperf: in x[n]; inout out[n] */
int keep_positive(const int *x, int *out, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] > 0)
            out[kept++] = x[i];
    }
    return kept;
}
