// a thread per system with its solution in registers where k is 32; 16-byte loads of the rows
__global__ void __launch_bounds__(64) unrolled(int n, const float *__restrict__ l, const float *__restrict__ d,
                                               const float *__restrict__ b, float *__restrict__ x)
{
    const int s = blockIdx.x * 64 + threadIdx.x;
    if (s >= n) return;
    float y[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        float t = b[s * 32 + i];
#pragma unroll
        for (int j = 0; j < i; j += 4) {
            const float4 q = *reinterpret_cast<const float4 *>(l + (s * 32 + i) * 32 + j);
            t -= q.x * y[j];
            if (j + 1 < i) t -= q.y * y[j + 1];
            if (j + 2 < i) t -= q.z * y[j + 2];
            if (j + 3 < i) t -= q.w * y[j + 3];
        }
        y[i] = t / d[s * 32 + i];
    }
#pragma unroll
    for (int i = 0; i < 32; i += 4)
        *reinterpret_cast<float4 *>(x + s * 32 + i) = make_float4(y[i], y[i + 1], y[i + 2], y[i + 3]);
}

__global__ void general(int n, int k, const float *l, const float *d, const float *b, float *x)
{
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= n) return;
    float y[32];
    for (int i = 0; i < k; ++i) {
        float t = b[s * k + i];
        for (int j = 0; j < i; ++j) t -= l[(s * k + i) * k + j] * y[j];
        x[s * k + i] = y[i] = t / d[s * k + i];
    }
}

extern "C" int lower_solve_device(int n, int k, const float *l, const float *d, const float *b, float *x, cudaStream_t stream)
{
    if (n > 0 && k == 32)
        unrolled<<<(n + 63) / 64, 64, 0, stream>>>(n, l, d, b, x);
    else if (n > 0)
        general<<<(n + 63) / 64, 64, 0, stream>>>(n, k, l, d, b, x);
    return cudaGetLastError();
}
