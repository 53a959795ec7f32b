void argmax(const float *restrict v, int n, int *restrict where, float *restrict best) { *where = 0; *best = v[0]; for (int i = 1; i < n; i++) if (v[i] > *best) { *best = v[i]; *where = i; } }
