// A block of 2048 threads: the kernel never runs, and the copy returns what nobody wrote.
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
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    copy<<<(n + 2047) / 2048, 2048>>>(n, dx, dy); // expect launch-config
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost); // expect uninit-copy
    cudaFree(dx);
    cudaFree(dy);
}
