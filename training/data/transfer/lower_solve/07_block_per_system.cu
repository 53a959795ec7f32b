// a block of 256 for each system: products of a row in shared memory, thread 0 adds them up
__global__ void block_solve(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    __shared__ float y[32], p[256];
    int s = blockIdx.x, t = threadIdx.x;
    for (int i = 0; i < k; i++) {
        p[t] = t < i ? l[(s * k + i) * k + t] * y[t] : 0.0f;
        __syncthreads();
        if (t == 0) {
            float v = b[s * k + i];
            for (int j = 0; j < i; j++)
                v -= p[j];
            y[i] = v / d[s * k + i];
        }
        __syncthreads();
    }
    if (t < k)
        x[s * k + t] = y[t];
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n > 0)
        block_solve<<<n, 256, 0, stream>>>(n, k, l, d, b, x);
    return cudaGetLastError();
}
