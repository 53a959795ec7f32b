// a block per tile: rows, barrier, columns, all in shared memory
__global__ void separable(const float *x, const float *wr, const float *wi, float *re, float *im)
{
    __shared__ float s[16][16], tr[16][16], ti[16][16], cr[16], ci[16];
    int v = threadIdx.x, r = threadIdx.y, at = blockIdx.x * 256 + r * 16 + v;
    s[r][v] = x[at];
    if (r == 0) cr[v] = wr[v];
    if (r == 1) ci[v] = wi[v];
    __syncthreads();
    float a = 0.0f, b = 0.0f;
    for (int c = 0; c < 16; c++) {
        a += s[r][c] * cr[v * c & 15];
        b += s[r][c] * ci[v * c & 15];
    }
    tr[r][v] = a;
    ti[r][v] = b;
    __syncthreads();
    int u = r;
    a = b = 0.0f;
    for (int q = 0; q < 16; q++) {
        int k = u * q & 15;
        a += tr[q][v] * cr[k] - ti[q][v] * ci[k];
        b += tr[q][v] * ci[k] + ti[q][v] * cr[k];
    }
    re[at] = a;
    im[at] = b;
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        separable<<<batch, dim3(16, 16), 0, stream>>>(x, wr, wi, re, im);
    return cudaGetLastError();
}
