static float lap(const float *f, int rows, int cols, int i, int j)
{
    int up = i == 0 ? rows - 1 : i - 1, down = i == rows - 1 ? 0 : i + 1;
    int left = j == 0 ? cols - 1 : j - 1, right = j == cols - 1 ? 0 : j + 1;
    return f[up * cols + j] + f[down * cols + j] + f[i * cols + left] + f[i * cols + right] - 4.0f * f[i * cols + j];
}

/* Gray-Scott reaction-diffusion, one step on a torus of rows x cols.
   cudaperf: entry; in u[rows*cols] in 0.0..1.0; in v[rows*cols] in 0.0..1.0; out un[rows*cols]; out vn[rows*cols]
   cudaperf: feed in 0.0..0.1; kill in 0.0..0.1 */
void gray_scott(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols; j++) {
            float a = u[i * cols + j], b = v[i * cols + j];
            float r = a * b * b;
            un[i * cols + j] = a + 0.16f * lap(u, rows, cols, i, j) - r + feed * (1.0f - a);
            vn[i * cols + j] = b + 0.08f * lap(v, rows, cols, i, j) + r - (feed + kill) * b;
        }
    }
}
