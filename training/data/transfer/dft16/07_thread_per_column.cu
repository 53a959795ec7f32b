// one thread makes a column of coefficients; the row sums it needs are computed on the way
__global__ void column(int batch, const float *__restrict__ x, const float *__restrict__ wr,
                       const float *__restrict__ wi, float *__restrict__ re, float *__restrict__ im)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x, t = g / 16, v = g % 16;
    if (t >= batch)
        return;
    float a[16], b[16];
    for (int u = 0; u < 16; u++)
        a[u] = b[u] = 0.0f;
    for (int r = 0; r < 16; r++) {
        float p = 0.0f, q = 0.0f;
        for (int c = 0; c < 16; c++) {
            float value = x[t * 256 + r * 16 + c];
            p += value * wr[v * c & 15];
            q += value * wi[v * c & 15];
        }
#pragma unroll
        for (int u = 0; u < 16; u++) {
            float c = wr[u * r & 15], s = wi[u * r & 15];
            a[u] += p * c - q * s;
            b[u] += p * s + q * c;
        }
    }
    for (int u = 0; u < 16; u++) {
        re[t * 256 + u * 16 + v] = a[u];
        im[t * 256 + u * 16 + v] = b[u];
    }
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        column<<<(batch * 16 + 127) / 128, 128, 0, stream>>>(batch, x, wr, wi, re, im);
    return cudaGetLastError();
}
