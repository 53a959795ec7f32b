// Destination and source do not fit the direction.
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
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyDeviceToHost); // expect bad-copy
    cudaMemset(dx, 0, n * sizeof(float));
    cudaMemcpy(dx, y, n * sizeof(float), cudaMemcpyDeviceToDevice); // expect bad-copy
    cudaFree(dx);
}
