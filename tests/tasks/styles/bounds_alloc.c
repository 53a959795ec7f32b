#include <stdlib.h>
void work(const int *idx, const float *a, float *o, int n, int m) { for (int i = 0; i < n; i++) o[i] = a[idx[i]]; }
int driver(int n, int m) { int *idx = malloc(n * sizeof(int)); float *a = malloc(sizeof(float) * m); float *o = calloc(n, sizeof *o); for (int i = 0; i < n; i++) idx[i] = i % m; for (int i = 0; i < m; i++) a[i] = i; work(idx, a, o, n, m); int r = (int)o[0]; free(o); free(a); free(idx); return r; }
