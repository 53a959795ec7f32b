/* cudaperf: in x[n]; out y[n] */
void relu(int n, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
