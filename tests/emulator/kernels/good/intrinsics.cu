// Intrinsics against plain C, element by element.
#include <cuda_runtime.h>

__device__ float near(float a, float b) { return fabsf(a - b) <= 1e-5f * (1.0f + fabsf(b)) ? 0.0f : 1.0f; }

__global__ void check(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], p = fabsf(v) + 0.25f, wrong = 0.0f, s, c;
    wrong += near(__expf(v), expf(v)) + near(__logf(p), logf(p)) + near(__powf(p, 2.0f), p * p);
    wrong += near(__fdividef(v, p), v / p) + near(rsqrtf(p), 1.0f / sqrtf(p)) + near(__frcp_rn(p), 1.0f / p);
    wrong += near(fmaf(v, p, 1.0f), v * p + 1.0f) + near(__saturatef(v), fminf(fmaxf(v, 0.0f), 1.0f));
    wrong += near(erfcf(v), 1.0f - erff(v)) + near(normcdff(v), 0.5f * erfcf(-v * 0.70710678f));
    wrong += near(erfinvf(erff(v * 0.3f)), v * 0.3f) + near(rcbrtf(p) * cbrtf(p), 1.0f);
    sincosf(v, &s, &c);
    wrong += near(s, sinf(v)) + near(c, cosf(v)) + near(sinpif(v), sinf(3.14159265f * v));
    __sincosf(v, &s, &c);
    wrong += near(s * s + c * c, 1.0f);
    unsigned u = __float_as_uint(v);
    wrong += __uint_as_float(u) != v || __int_as_float(__float_as_int(v)) != v;
    int ones = 0;
    for (unsigned rest = u; rest; rest &= rest - 1)
        ones++;
    wrong += __popc(u) != ones || __popcll(((unsigned long long)u << 32) | u) != 2 * ones;
    wrong += __clz(1) != 31 || __clz(0) != 32 || __clzll(1) != 63 || __ffs(0) != 0 || __ffs(8) != 4;
    wrong += __brev(1u) != 0x80000000u || __byte_perm(0x33221100u, 0x77665544u, 0x7531) != 0x77553311u;
    wrong += __mul24(-3, 5) != -15 || __umulhi(0x80000000u, 6u) != 3u || __mulhi(-1, 1) != -1;
    wrong += __float2int_rn(2.5f) != 2 || __float2int_rz(-2.7f) != -2 || __float2int_rd(-2.1f) != -3 ||
             __float2int_ru(2.1f) != 3 || __float2int_rn(1e20f) != 0x7fffffff || __float2uint_rn(-5.0f) != 0u;
    wrong += __int2float_rn(7) != 7.0f || __double2int_rn(3.5) != 4 || __hiloint2double(0x40000000, 0) != 2.0;
    wrong += min(3, -2) != -2 || max(3u, 7u) != 7u || min(2.0f, 1.0f) != 1.0f || max(-1LL, 5LL) != 5LL;
    wrong += min(1.5, 2.0f) != 1.5 || abs(-4) != 4 || __sad(3, -4, 10) != 17u || __dp4a(0x01010101, 0x02020202, 1) != 9;
    wrong += __funnelshift_l(0x80000000u, 1u, 1) != 3u || fabs(-2.5) != 2.5 || __dadd_rn(1.0, 2.0) != 3.0;
    wrong += exp10f(2.0f) < 99.9f || copysignf(2.0f, -1.0f) != -2.0f || !isnan(nanf("")) || isinf(v);
    y[i] = v + 1000.0f * wrong;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    check<<<(n + 127) / 128, 128>>>(n, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
