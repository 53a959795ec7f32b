// One thread reads the shared total while others still add to it.
#include <cuda_runtime.h>

__global__ void sum(int n, const float *x, float *total)
{
    __shared__ float all;
    if (threadIdx.x == 0)
        all = 0.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&all, x[i]); // expect race
    if (threadIdx.x == 0)
        *total = all;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<1, 256>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
