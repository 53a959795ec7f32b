/* One explicit step of heat flow where conductivity varies from cell to cell. Faces of the box stay as they are.
 * cudaperf: in u[nz*ny*nx]; in k[nz*ny*nx] in 0.0..1.0; out v[nz*ny*nx]; dt in 0.0..0.16
 */
#define AT(z, y, x) (((z) * ny + (y)) * nx + (x))

void heat3d(int nz, int ny, int nx, float dt, const float *u, const float *k, float *v)
{
    for (int z = 0; z < nz; z++)
        for (int y = 0; y < ny; y++)
            for (int x = 0; x < nx; x++) {
                if (z == 0 || y == 0 || x == 0 || z == nz - 1 || y == ny - 1 || x == nx - 1) {
                    v[AT(z, y, x)] = u[AT(z, y, x)];
                    continue;
                }
                float c = u[AT(z, y, x)];
                float s = u[AT(z - 1, y, x)] + u[AT(z + 1, y, x)] + u[AT(z, y - 1, x)] + u[AT(z, y + 1, x)]
                        + u[AT(z, y, x - 1)] + u[AT(z, y, x + 1)];
                v[AT(z, y, x)] = c + dt * k[AT(z, y, x)] * (s - 6.0f * c);
            }
}
