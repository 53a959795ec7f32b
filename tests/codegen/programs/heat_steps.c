/* cudaperf: inout u[n]; inout tmp[n]; steps in 0..5 */
void heat_steps(double *u, double *tmp, int n, int steps)
{
    int t = 0;
    while (t < steps) {
        for (int i = 1; i < n - 1; i++)
            tmp[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]);
        for (int i = 1; i < n - 1; i++)
            u[i] = tmp[i];
        t++;
    }
}
