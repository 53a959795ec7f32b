// four lanes a matrix, a row each: Gauss-Jordan with rows exchanged by shuffles
__global__ void quads(int n, float lambda, const float4 *__restrict__ m, float4 *__restrict__ out)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x, r = threadIdx.x & 3;
    bool inside = g < 4 * n;
    float4 q = inside ? m[g] : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    float a[4] = {q.x, q.y, q.z, q.w}, b[4];
#pragma unroll
    for (int c = 0; c < 4; c++) {
        a[c] += r == c ? lambda : 0.0f;
        b[c] = r == c ? 1.0f : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float inv = 1.0f / __shfl_sync(0xffffffffu, a[k], k, 4);
        float f = a[k];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            float pa = __shfl_sync(0xffffffffu, a[c], k, 4) * inv;
            float pb = __shfl_sync(0xffffffffu, b[c], k, 4) * inv;
            a[c] = r == k ? pa : a[c] - f * pa;
            b[c] = r == k ? pb : b[c] - f * pb;
        }
    }
    if (inside)
        out[g] = make_float4(b[0], b[1], b[2], b[3]);
}

extern "C" int inverse4_device(int n, float lambda, const float *m, float *out, cudaStream_t stream)
{
    if (n > 0)
        quads<<<(4 * n + 127) / 128, 128, 0, stream>>>(n, lambda, (const float4 *)m, (float4 *)out);
    return cudaGetLastError();
}
