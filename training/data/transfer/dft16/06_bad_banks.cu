// as 03 with threads the other way round: x is the row, so loads and stores are 16 apart
__global__ void turned(const float *x, const float *wr, const float *wi, float *re, float *im)
{
    __shared__ float s[256], tr[256], ti[256];
    int r = threadIdx.x, v = threadIdx.y, base = blockIdx.x * 256;
    s[r * 16 + v] = x[base + r * 16 + v];
    __syncthreads();
    float a = 0, b = 0;
    for (int c = 0; c < 16; c++) {
        a += s[r * 16 + c] * wr[(v * c) % 16];
        b += s[r * 16 + c] * wi[(v * c) % 16];
        __syncthreads();
    }
    tr[r * 16 + v] = a;
    ti[r * 16 + v] = b;
    __syncthreads();
    a = 0, b = 0;
    for (int q = 0; q < 16; q++) {
        int k = (r * q) % 16;
        a += tr[q * 16 + v] * wr[k] - ti[q * 16 + v] * wi[k];
        b += tr[q * 16 + v] * wi[k] + ti[q * 16 + v] * wr[k];
        __syncthreads();
    }
    re[base + r * 16 + v] = a;
    im[base + r * 16 + v] = b;
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        turned<<<batch, dim3(16, 16), 0, stream>>>(x, wr, wi, re, im);
    return cudaGetLastError();
}
