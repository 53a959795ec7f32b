// The number of turns, and so of barriers, depends on the thread.
#include <cuda_runtime.h>

__global__ void sum(int n, const float *x, float *total)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = 0.0f;
    for (int i = t; i < n; i += blockDim.x) {
        part[t] += x[i];
        __syncthreads(); // expect barrier-divergence
    }
    if (t == 0)
        atomicAdd(total, part[0]);
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<1, 256>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
