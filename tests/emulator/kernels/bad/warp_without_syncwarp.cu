// Lanes exchange through shared memory, trusting that they run in lockstep.
#include <cuda_runtime.h>

__global__ void reverse(int n, const float *x, float *y)
{
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0.0f; // expect race
    float other = s[31 - t]; // expect race, uninit-read
    if (t < n)
        y[t] = other;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(dy, 0, n * sizeof(float));
    reverse<<<1, 32>>>(n, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
