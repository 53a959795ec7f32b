void rev_fill(int *out, int n) { for (int i = n - 1; i >= 0; i--) out[i] = i * i; }
