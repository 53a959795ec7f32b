// Threads of a block count in shared memory with a plain increment.
#include <cuda_runtime.h>

__global__ void count(int n, const float *x, float *bins)
{
    __shared__ float mine[16];
    if (threadIdx.x < 16)
        mine[threadIdx.x] = 0.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        mine[(int)(x[i] * x[i]) & 15] += 1.0f; // expect race
    __syncthreads();
    if (threadIdx.x < 16)
        bins[threadIdx.x] = mine[threadIdx.x];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(dy, 0, n * sizeof(float));
    count<<<1, 256>>>(n, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
