void dcopy(int n, const double *dx, int incx, double *dy, int incy)
{
    if (n <= 0) return;
    if (incx == 1 && incy == 1) {
        for (int i = 0; i < n; i++)
            dy[i] = dx[i];
        return;
    }
    int ix = 0, iy = 0;
    for (int i = 0; i < n; i++) {
        dy[iy] = dx[ix];
        ix += incx;
        iy += incy;
    }
}
