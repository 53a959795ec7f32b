void ger(int m, int n, float alpha, const float *x, const float *y, float *A)
{
    float *row = A;
    for (int i = 0; i < m; i++) {
        float t = alpha * x[i];
        for (int j = 0; j < n; j++)
            row[j] += t * y[j];
        row += n;
    }
}
