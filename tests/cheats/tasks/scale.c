/* cudaperf: in x[n]; out y[n] */
void scale(int n, float a, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i];
}
