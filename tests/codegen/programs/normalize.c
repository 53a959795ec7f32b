#include <math.h>
/* a reduction whose result the next loop needs */
void normalize(float *v, int n)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += v[i] * v[i];
    float scale = sum > 0.0f ? 1.0f / sqrtf(sum) : 0.0f;
    for (int i = 0; i < n; i++)
        v[i] *= scale;
}
