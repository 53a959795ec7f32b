void negate(int *a, unsigned n) { unsigned i = 0; while (i < n) { a[i] = -a[i]; i++; } }
