#include <stdbool.h>
void is_prime(bool *flag, int n) { for (int i = 0; i < n; i++) { bool p = i >= 2; for (int d = 2; d * d <= i; d++) if (i % d == 0) { p = false; break; } flag[i] = p; } }
