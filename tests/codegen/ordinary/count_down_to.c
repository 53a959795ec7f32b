void fill_down(float *v, int lo, int hi)
{
    int i = hi;
    while (i >= lo && i >= 0) {
        v[i] = i * 0.5f;
        --i;
    }
}
