#include <math.h>
static float sq(float v) { return v * v; }
static float dist(const float *a, const float *b, int dim) { float s = 0; for (int d = 0; d < dim; d++) s += sq(a[d] - b[d]); return sqrtf(s); }
static void row(const float *p, const float *q, float *out, int m, int dim) { for (int j = 0; j < m; j++) out[j] = dist(p, q + j * dim, dim); }
void pairwise(const float *p, const float *q, float *out, int n, int m, int dim) { for (int i = 0; i < n; i++) row(p + i * dim, q, out + i * m, m, dim); }
