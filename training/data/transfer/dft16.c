/* Two-dimensional DFT of a batch of real 16 x 16 tiles; wr and wi are the cosines and sines of -2*pi*k/16.
   cudaperf: in x[batch*256]; in wr[16] in -1.0..1.0; in wi[16] in -1.0..1.0; out re[batch*256]; out im[batch*256] */
void dft16(int batch, const float *x, const float *wr, const float *wi, float *re, float *im)
{
    for (int t = 0; t < batch; t++) {
        float tr[16][16], ti[16][16];
        for (int r = 0; r < 16; r++)
            for (int v = 0; v < 16; v++) {
                float sr = 0.0f, si = 0.0f;
                for (int c = 0; c < 16; c++) {
                    sr += x[t * 256 + r * 16 + c] * wr[v * c % 16];
                    si += x[t * 256 + r * 16 + c] * wi[v * c % 16];
                }
                tr[r][v] = sr;
                ti[r][v] = si;
            }
        for (int u = 0; u < 16; u++)
            for (int v = 0; v < 16; v++) {
                float sr = 0.0f, si = 0.0f;
                for (int r = 0; r < 16; r++) {
                    int k = u * r % 16;
                    sr += tr[r][v] * wr[k] - ti[r][v] * wi[k];
                    si += tr[r][v] * wi[k] + ti[r][v] * wr[k];
                }
                re[t * 256 + u * 16 + v] = sr;
                im[t * 256 + u * 16 + v] = si;
            }
    }
}
