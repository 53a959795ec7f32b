#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define B 32
void tiled(const float *a, float *b, int n) { for (int ii = 0; ii < n; ii += B) for (int i = ii; i < MIN(ii + B, n); i++) b[i] = a[i] + 1; }
