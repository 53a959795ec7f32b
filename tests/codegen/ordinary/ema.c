void ema(const float *x, float *y, int n, float a)
{
    float s = 0;
    for (int i = 0; i < n; i++) {
        s = a * x[i] + (1 - a) * s;
        y[i] = s;
    }
}
