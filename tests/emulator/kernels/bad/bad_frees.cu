// Freed twice, freed in the middle, freed though it is the host's.
#include <cuda_runtime.h>

__global__ void copy(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaFree(dx);
    cudaFree(dx);     // expect bad-free
    cudaFree(dy + 1); // expect bad-free
    cudaFree(y);      // expect bad-free
    cudaFreeHost(dy); // expect bad-free
    cudaFree(dy);
}
