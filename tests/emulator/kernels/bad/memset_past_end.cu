// The fill is longer than the allocation.
#include <cuda_runtime.h>

__global__ void copy(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMemset(dx, 0, (n + 1) * sizeof(float)); // expect bad-copy
    cudaMemset(y, 0, n * sizeof(float)); // expect bad-copy
    cudaFree(dx);
}
