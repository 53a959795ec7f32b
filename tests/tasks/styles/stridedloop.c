void pairs(const float *x, float *y, int n) { for (int i = 0; i + 1 < n; i += 2) { y[i] = x[i + 1]; y[i + 1] = x[i]; } }
