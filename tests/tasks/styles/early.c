void inc(long *v, long n) { if (n <= 0 || !v) return; for (long i = 0; i < n; ++i) v[i] += 1; }
