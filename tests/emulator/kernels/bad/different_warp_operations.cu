// The lanes of one mask are in different operations.
#include <cuda_runtime.h>

__global__ void vote(int n, const float *x, float *total)
{
    int t = threadIdx.x, result;
    if (t < 16)
        result = __any_sync(0xffffffffu, x[t] > 0.0f);
    else
        result = __shfl_sync(0xffffffffu, t, 0); // expect warp-divergence
    if (t == 0)
        *total = result;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    vote<<<1, 32>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
