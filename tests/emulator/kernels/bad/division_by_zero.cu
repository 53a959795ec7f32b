// An integer is divided by the thread index.
#include <cuda_runtime.h>

__global__ void divide(int n, int *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = n / i; // expect division-by-zero
}

extern "C" void f(int n, const float *x, float *y)
{
    int *d;
    cudaMalloc(&d, n * sizeof(int));
    divide<<<(n + 255) / 256, 256>>>(n, d);
}
