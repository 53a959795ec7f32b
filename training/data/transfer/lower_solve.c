/* n lower triangular systems of order k: strictly lower part in l (k x k each), diagonal in d.
 * cudaperf: k in 1..32; in l[n*k*k] in -0.25..0.25; in d[n*k] in 1.0..2.0; in b[n*k]; out x[n*k] */
void lower_solve(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    for (int s = 0; s < n; s++)
        for (int i = 0; i < k; i++) {
            float t = b[s * k + i];
            for (int j = 0; j < i; j++)
                t -= l[(s * k + i) * k + j] * x[s * k + j];
            x[s * k + i] = t / d[s * k + i];
        }
}
