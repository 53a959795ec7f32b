// The total is never set to zero.
#include <cuda_runtime.h>

__global__ void sum(int n, const float *x, float *total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(total, x[i]); // expect uninit-read
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<(n + 255) / 256, 256>>>(n, dx, dy);
    cudaMemset(dy + 1, 0, (n - 1) * sizeof(float));
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
