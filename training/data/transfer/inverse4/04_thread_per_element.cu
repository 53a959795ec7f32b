// 16 threads a matrix: each computes one cofactor and the whole determinant
__device__ float minor3(const float *a, int row, int col)
{
    int r[3], c[3];
    for (int k = 0, i = 0, j = 0; k < 4; k++) {
        if (k != row) r[i++] = k;
        if (k != col) c[j++] = k;
    }
    return a[4 * r[0] + c[0]] * (a[4 * r[1] + c[1]] * a[4 * r[2] + c[2]] - a[4 * r[1] + c[2]] * a[4 * r[2] + c[1]])
         - a[4 * r[0] + c[1]] * (a[4 * r[1] + c[0]] * a[4 * r[2] + c[2]] - a[4 * r[1] + c[2]] * a[4 * r[2] + c[0]])
         + a[4 * r[0] + c[2]] * (a[4 * r[1] + c[0]] * a[4 * r[2] + c[1]] - a[4 * r[1] + c[1]] * a[4 * r[2] + c[0]]);
}

__global__ void invert(int n, float lambda, const float *m, float *out)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= 16 * n)
        return;
    int i = g / 16, row = g % 16 / 4, col = g % 4;
    float a[16];
    for (int k = 0; k < 16; k++)
        a[k] = m[16 * i + k] + (k % 5 == 0 ? lambda : 0.0f);
    float det = 0.0f;
    for (int k = 0; k < 4; k++)
        det += (k % 2 ? -a[k] : a[k]) * minor3(a, 0, k);
    float c = minor3(a, col, row);
    out[g] = ((row + col) % 2 ? -c : c) / det;
}

extern "C" int inverse4_device(int n, float lambda, const float *m, float *out, cudaStream_t stream)
{
    if (n > 0)
        invert<<<(16 * n + 255) / 256, 256, 0, stream>>>(n, lambda, m, out);
    return cudaGetLastError();
}
