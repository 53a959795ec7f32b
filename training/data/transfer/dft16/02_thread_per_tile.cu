// a thread does a whole tile with its rows in local memory
__global__ void tile(int batch, const float *x, const float *wr, const float *wi, float *re, float *im)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= batch)
        return;
    float tr[16][16], ti[16][16];
    for (int r = 0; r < 16; r++)
        for (int v = 0; v < 16; v++) {
            tr[r][v] = ti[r][v] = 0.0f;
            for (int c = 0; c < 16; c++) {
                tr[r][v] += x[t * 256 + r * 16 + c] * wr[v * c % 16];
                ti[r][v] += x[t * 256 + r * 16 + c] * wi[v * c % 16];
            }
        }
    for (int u = 0; u < 16; u++)
        for (int v = 0; v < 16; v++) {
            float a = 0.0f, b = 0.0f;
            for (int r = 0; r < 16; r++) {
                int k = u * r % 16;
                a += tr[r][v] * wr[k] - ti[r][v] * wi[k];
                b += tr[r][v] * wi[k] + ti[r][v] * wr[k];
            }
            re[t * 256 + u * 16 + v] = a;
            im[t * 256 + u * 16 + v] = b;
        }
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        tile<<<(batch + 127) / 128, 128, 0, stream>>>(batch, x, wr, wi, re, im);
    return cudaGetLastError();
}
