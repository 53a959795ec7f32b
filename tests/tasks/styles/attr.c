__attribute__((access(read_only, 1, 3), access(write_only, 2, 3)))
void rnd(const float *a, float *b, int n, const int *p);
void rnd(const float *a, float *b, int n, const int *p) { for (int i = 0; i < n; i++) if (p[i] > 0) b[i] = a[p[i] % 3]; }
