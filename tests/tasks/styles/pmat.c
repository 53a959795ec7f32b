#define N 4
void mul4(const float (*a)[N], float (*b)[N], int n) { for (int i = 0; i < n; i++) for (int j = 0; j < N; j++) b[i][j] = 2 * a[i][j]; }
