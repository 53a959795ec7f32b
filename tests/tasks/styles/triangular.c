void tri(const double *a, double *c, int n) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) c[i * n + j] = a[j * n + i]; }
