// rows to a temporary in global memory, then columns
__global__ void rows(int n, const float *x, const float *wr, const float *wi, float *tr, float *ti)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < n) {
        int v = g % 16, base = g - v;
        float a = 0.0f, b = 0.0f;
        for (int c = 0; c < 16; c++) {
            a += x[base + c] * wr[v * c % 16];
            b += x[base + c] * wi[v * c % 16];
        }
        tr[g] = a;
        ti[g] = b;
    }
}

__global__ void columns(int n, const float *tr, const float *ti, const float *wr, const float *wi, float *re, float *im)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < n) {
        int v = g % 16, u = g / 16 % 16, base = g / 256 * 256;
        float a = 0.0f, b = 0.0f;
        for (int r = 0; r < 16; r++) {
            int k = u * r % 16;
            float p = tr[base + r * 16 + v], q = ti[base + r * 16 + v];
            a += p * wr[k] - q * wi[k];
            b += p * wi[k] + q * wr[k];
        }
        re[g] = a;
        im[g] = b;
    }
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    int n = batch * 256;
    if (n <= 0)
        return cudaSuccess;
    float *tmp;
    cudaError_t e = cudaMallocAsync((void **)&tmp, 2 * sizeof(float) * n, stream);
    if (e != cudaSuccess)
        return e;
    rows<<<(n + 255) / 256, 256, 0, stream>>>(n, x, wr, wi, tmp, tmp + n);
    columns<<<(n + 255) / 256, 256, 0, stream>>>(n, tmp, tmp + n, wr, wi, re, im);
    cudaFreeAsync(tmp, stream);
    return cudaGetLastError();
}
