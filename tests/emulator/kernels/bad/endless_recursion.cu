// A device function that calls itself too often.
#include <cuda_runtime.h>

__device__ __noinline__ float descend(float v, int depth)
{
    float own[64];
    own[depth & 63] = v; // expect stack-overflow
    if (depth > 100000)
        return v;
    return descend(v + 1.0f, depth + 1) + own[(depth + 1) & 63];
}

__global__ void start(int n, float *y) { y[0] = descend(1.0f, n); }

extern "C" void f(int n, const float *x, float *y)
{
    float *d;
    cudaMalloc(&d, sizeof(float));
    start<<<1, 1>>>(n, d);
}
