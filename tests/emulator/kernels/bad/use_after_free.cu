// The input is freed before the kernel reads it.
#include <cuda_runtime.h>

__global__ void copy(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i]; // expect use-after-free
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaFree(dx);
    copy<<<(n + 255) / 256, 256>>>(n, dx, dy);
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice); // expect bad-copy
    cudaFree(dy);
}
