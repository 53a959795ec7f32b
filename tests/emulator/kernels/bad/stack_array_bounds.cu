// A thread's own array is one short.
#include <cuda_runtime.h>

__global__ void local(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float own[4];
    for (int k = 0; k <= n % 4 + 4; k++)
        own[k] = k; // expect oob-array
    if (i < n)
        y[i] = own[i % 4];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dy;
    cudaMalloc(&dy, n * sizeof(float));
    local<<<(n + 255) / 256, 256>>>(n, dy, dy);
}
