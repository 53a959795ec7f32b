// One thread sets a shared flag that the others read at once.
#include <cuda_runtime.h>

__global__ void search(int n, const float *x, float *total)
{
    __shared__ int found;
    if (threadIdx.x == 0)
        found = x[blockIdx.x] > 0.0f;
    if (found) // expect race
        atomicAdd(total, 1.0f);
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    search<<<4, 64>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
