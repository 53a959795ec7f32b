/* cudaperf: in p[n] */
typedef struct { double x, y; } P2;
double pair_energy(const P2 *p, int n, double eps)
{
    double e = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            double dx = p[i].x - p[j].x, dy = p[i].y - p[j].y;
            e += 1.0 / (dx * dx + dy * dy + eps * eps + 1.0);
        }
    return e;
}
