#define AT(m, r, c) (m)[(r) * cols + (c)]
#define FOR(i, n) for (int i = 0; i < (n); i++)
void transpose(const double *a, double *b, int rows, int cols) { FOR(r, rows) FOR(c, cols) b[c * rows + r] = AT(a, r, c); }
