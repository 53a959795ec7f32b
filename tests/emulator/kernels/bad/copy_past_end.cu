// The allocation is counted in elements, the copy in bytes.
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
    cudaMalloc(&dx, n);
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice); // expect bad-copy
    cudaFree(dx);
}
