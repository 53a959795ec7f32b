// The kernel gets the host's pointer.
#include <cuda_runtime.h>

__global__ void copy(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i]; // expect host-pointer-in-kernel
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dy;
    cudaMalloc(&dy, n * sizeof(float));
    copy<<<(n + 255) / 256, 256>>>(n, x, dy);
    if (cudaDeviceSynchronize() != cudaErrorIllegalAddress || cudaGetLastError() != cudaErrorIllegalAddress ||
        cudaMalloc(&dy, 4) != cudaErrorIllegalAddress)
        *(volatile int *)0 = 1; // the error must stay: nothing works after it
}
