// one thread per coefficient, all 256 terms
__global__ void dft(int batch, const float *x, const float *wr, const float *wi, float *re, float *im)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= batch * 256)
        return;
    int t = g / 256, u = g / 16 % 16, v = g % 16;
    float sr = 0.0f, si = 0.0f;
    for (int r = 0; r < 16; r++) {
        float tr = 0.0f, ti = 0.0f;
        for (int c = 0; c < 16; c++) {
            float p = x[t * 256 + r * 16 + c];
            tr += p * wr[v * c % 16];
            ti += p * wi[v * c % 16];
        }
        int k = u * r % 16;
        sr += tr * wr[k] - ti * wi[k];
        si += tr * wi[k] + ti * wr[k];
    }
    re[g] = sr;
    im[g] = si;
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        dft<<<batch, 256, 0, stream>>>(batch, x, wr, wi, re, im);
    return cudaGetLastError();
}
