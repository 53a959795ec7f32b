/* y = L x for a packed-by-rows square lower triangle kept in a full matrix */
void lower_solve_rows(int n, const float L[n][n], const float *x, float *y)
{
    for (int i = 0; i < n; ++i) {
        float s = 0;
        for (int j = 0; j <= i; ++j)
            s += L[i][j] * x[j];
        y[i] = s;
    }
}
