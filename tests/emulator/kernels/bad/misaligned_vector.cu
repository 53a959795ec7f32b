// float4 at an address that is a multiple of four only.
#include <cuda_runtime.h>

__global__ void shift(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i + 4 < n)
        *(float4 *)(y + 4 * i) = *(const float4 *)(x + 4 * i + 1); // expect misaligned
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    shift<<<(n + 1023) / 1024, 256>>>(n, dx, dy);
}
