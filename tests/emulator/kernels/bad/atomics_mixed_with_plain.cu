// A plain store among atomics.
#include <cuda_runtime.h>

__global__ void sum(int n, const float *x, float *total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        *total = 0.0f;
    if (i < n)
        atomicAdd(total, x[i]); // expect race
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<(n + 255) / 256, 256>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
