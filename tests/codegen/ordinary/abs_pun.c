void fast_abs(float *x, int n)
{
    for (int i = 0; i < n; i++) {
        float v = x[i];
        unsigned u = *(unsigned *)&v;
        u &= 0x7fffffffu;
        x[i] = *(float *)&u;
    }
}
