// The bins in shared memory are never cleared.
#include <cuda_runtime.h>

__global__ void count(int n, const float *x, float *bins)
{
    __shared__ unsigned mine[16];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&mine[(int)(x[i] * x[i]) & 15], 1u); // expect uninit-read
    __syncthreads();
    if (threadIdx.x < 16)
        bins[threadIdx.x] = mine[threadIdx.x]; // expect uninit-read
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
