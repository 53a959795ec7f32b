// sums in double, 1024 threads a row, barriers after every step
__global__ void cosine(int n, int d, const float *a, const float *b, float *sim)
{
    __shared__ double s[3][1024];
    int t = threadIdx.x, row = blockIdx.x;
    s[0][t] = s[1][t] = s[2][t] = 0.0;
    __syncthreads();
    for (int j = t; j < d; j += blockDim.x) {
        double x = a[row * d + j], y = b[row * d + j];
        s[0][t] += x * y;
        s[1][t] += x * x;
        s[2][t] += y * y;
    }
    __syncthreads();
    for (int k = 0; k < 3; k++)
        for (int w = 512; w >= 1; w /= 2) {
            if (t < w)
                s[k][t] += s[k][t + w];
            __syncthreads();
        }
    if (t == 0)
        sim[row] = (float)(s[0][0] / (sqrt(s[1][0]) * sqrt(s[2][0]) + 1e-6));
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n > 0)
        cosine<<<n, 1024, 0, stream>>>(n, d, a, b, sim);
    return cudaGetLastError();
}
