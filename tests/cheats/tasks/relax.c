/* cudaperf: inout y[n] */
void relax(int n, int steps, float *y)
{
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n; i++)
            y[i] = 0.75f * y[i] + 1.0f;
}
