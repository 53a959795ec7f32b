// Blocks increment a device variable.
#include <cuda_runtime.h>

__device__ int counter;

__global__ void count(int n, const float *x, float *total)
{
    if (threadIdx.x == 0)
        counter = counter + 1; // expect race
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        *total = x[0];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    count<<<4, 32>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
