/* Undo run lengths: run r fills out[starts[r]] up to the next start; what is before the first run is 0.
   cudaperf: in starts[m] ascending in 0..n; in value[m]; out out[n]; n in 0.. */
void run_expand(int m, int n, const int *starts, const int *value, int *out)
{
    int i = 0;
    for (int r = -1; r < m; r++) {
        int end = r + 1 < m ? starts[r + 1] : n;
        int v = r < 0 ? 0 : value[r];
        for (; i < end; i++)
            out[i] = v;
    }
}
