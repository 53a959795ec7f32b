void ones(float *v, int n) { if (n <= 0) return; for (int i = 0; i < n; ++i) v[i] = 1; }
