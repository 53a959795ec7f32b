int dedupe(const int *in, int *out, int n)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && in[i] == in[i - 1])
            continue;
        out[k++] = in[i];
    }
    return k;
}
