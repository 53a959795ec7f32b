// elimination without pivoting (the shift makes the matrix dominant), in registers
__global__ void gauss_jordan(int n, float lambda, const float *m, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float a[4][4], b[4][4];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            a[r][c] = m[16 * i + 4 * r + c] + (r == c ? lambda : 0.0f);
            b[r][c] = r == c ? 1.0f : 0.0f;
        }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float inv = 1.0f / a[k][k];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            a[k][c] *= inv;
            b[k][c] *= inv;
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            if (r == k)
                continue;
            float f = a[r][k];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                a[r][c] -= f * a[k][c];
                b[r][c] -= f * b[k][c];
            }
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            out[16 * i + 4 * r + c] = b[r][c];
}

extern "C" int inverse4_device(int n, float lambda, const float *m, float *out, cudaStream_t stream)
{
    if (n > 0)
        gauss_jordan<<<(n + 63) / 64, 64, 0, stream>>>(n, lambda, m, out);
    return cudaGetLastError();
}
