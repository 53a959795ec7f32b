// One thread of every block increments a counter in global memory.
#include <cuda_runtime.h>

__global__ void count(int n, const float *x, float *total)
{
    __shared__ float sum;
    if (threadIdx.x == 0)
        sum = 0.0f;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&sum, x[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        *total += sum; // expect race
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    count<<<(n + 255) / 256, 256>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
