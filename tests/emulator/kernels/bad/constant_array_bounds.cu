// The index leaves a constant table.
#include <cuda_runtime.h>

__constant__ float table[4];

__global__ void look_up(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * table[i % 5]; // expect oob-array
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy, t[5] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
    cudaMemcpyToSymbol(table, t, sizeof t); // expect bad-copy
    cudaMemcpyToSymbol(table, t, 4 * sizeof(float));
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    look_up<<<(n + 255) / 256, 256>>>(n, dx, dy);
}
