static int clampi(int v, int lo, int hi) { if (v < lo) return lo; if (v > hi) return hi; return v; }
void box(const float *in, float *out, int n, int r) { for (int i = 0; i < n; i++) { float s = 0; for (int d = -r; d <= r; d++) s += in[clampi(i + d, 0, n - 1)]; out[i] = s / (2 * r + 1); } }
