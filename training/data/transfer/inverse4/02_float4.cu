// as one matrix a thread, but four 16-byte loads and stores
__device__ __forceinline__ void adjugate(const float (&a)[16], float (&o)[16])
{
    float s0 = a[0] * a[5] - a[4] * a[1], s1 = a[0] * a[6] - a[4] * a[2], s2 = a[0] * a[7] - a[4] * a[3];
    float s3 = a[1] * a[6] - a[5] * a[2], s4 = a[1] * a[7] - a[5] * a[3], s5 = a[2] * a[7] - a[6] * a[3];
    float c5 = a[10] * a[15] - a[14] * a[11], c4 = a[9] * a[15] - a[13] * a[11], c3 = a[9] * a[14] - a[13] * a[10];
    float c2 = a[8] * a[15] - a[12] * a[11], c1 = a[8] * a[14] - a[12] * a[10], c0 = a[8] * a[13] - a[12] * a[9];
    float det = 1.0f / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
    o[0] = (a[5] * c5 - a[6] * c4 + a[7] * c3) * det;
    o[1] = (-a[1] * c5 + a[2] * c4 - a[3] * c3) * det;
    o[2] = (a[13] * s5 - a[14] * s4 + a[15] * s3) * det;
    o[3] = (-a[9] * s5 + a[10] * s4 - a[11] * s3) * det;
    o[4] = (-a[4] * c5 + a[6] * c2 - a[7] * c1) * det;
    o[5] = (a[0] * c5 - a[2] * c2 + a[3] * c1) * det;
    o[6] = (-a[12] * s5 + a[14] * s2 - a[15] * s1) * det;
    o[7] = (a[8] * s5 - a[10] * s2 + a[11] * s1) * det;
    o[8] = (a[4] * c4 - a[5] * c2 + a[7] * c0) * det;
    o[9] = (-a[0] * c4 + a[1] * c2 - a[3] * c0) * det;
    o[10] = (a[12] * s4 - a[13] * s2 + a[15] * s0) * det;
    o[11] = (-a[8] * s4 + a[9] * s2 - a[11] * s0) * det;
    o[12] = (-a[4] * c3 + a[5] * c1 - a[6] * c0) * det;
    o[13] = (a[0] * c3 - a[1] * c1 + a[2] * c0) * det;
    o[14] = (-a[12] * s3 + a[13] * s1 - a[14] * s0) * det;
    o[15] = (a[8] * s3 - a[9] * s1 + a[10] * s0) * det;
}

__global__ void __launch_bounds__(128) invert(int n, float lambda, const float4 *__restrict__ m, float4 *__restrict__ out)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    float a[16], o[16];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        float4 q = m[4 * i + r];
        a[4 * r] = q.x, a[4 * r + 1] = q.y, a[4 * r + 2] = q.z, a[4 * r + 3] = q.w;
        a[5 * r] += lambda;
    }
    adjugate(a, o);
#pragma unroll
    for (int r = 0; r < 4; ++r)
        out[4 * i + r] = make_float4(o[4 * r], o[4 * r + 1], o[4 * r + 2], o[4 * r + 3]);
}

extern "C" int inverse4_device(int n, float lambda, const float *m, float *out, cudaStream_t stream)
{
    if (n > 0)
        invert<<<(n + 127) / 128, 128, 0, stream>>>(n, lambda, (const float4 *)m, (float4 *)out);
    return cudaGetLastError();
}
