void fill(int *a, int n) { if (n <= 0) return; int i = 0; do { a[i] = 7; i++; } while (i < n); }
