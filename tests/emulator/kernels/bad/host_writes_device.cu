// The host clears device memory in a loop.
#include <cuda_runtime.h>

__global__ void copy(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dy;
    cudaMalloc(&dy, n * sizeof(float));
    for (int i = 0; i < n; i++)
        dy[i] = 0.0f; // expect device-pointer-on-host
    y[0] = dy[0]; // expect device-pointer-on-host
    cudaFree(dy);
}
