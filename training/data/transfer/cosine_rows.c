#include <math.h>

// cudaperf: in a[n*d]; in b[n*d]; out sim[n]
void cosine_rows(int n, int d, const float *a, const float *b, float *sim)
{
    for (int i = 0; i < n; ++i) {
        float ab = 0.0f, aa = 0.0f, bb = 0.0f;
        for (int j = 0; j < d; ++j) {
            const float x = a[i * d + j], y = b[i * d + j];
            ab += x * y;
            aa += x * x;
            bb += y * y;
        }
        sim[i] = ab / (sqrtf(aa) * sqrtf(bb) + 1e-6f);
    }
}
