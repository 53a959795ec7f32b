void sweep(double *a, double *b, int n, int t) { for (int s = 0; s < t; s++) { for (int i = 1; i < n - 1; i++) b[i] = a[i - 1] + a[i + 1]; double *tmp = a; a = b; b = tmp; } }
