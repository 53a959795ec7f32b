void running_max(const int *in, int *out, int n)
{
    int m = in[0];
    for (int i = 0; i < n; i++) {
        if (in[i] > m)
            m = in[i];
        out[i] = m;
    }
}
