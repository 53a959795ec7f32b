void stretch(const float *a, float *b, int n, int k)
{
    int ix = k;
    for (int i = 0; i < n; i++) {
        b[i] = a[ix % 7] + k;
        ix += 2;
        k++;
    }
}
