// Only some warps reach the barrier.
#include <cuda_runtime.h>

__global__ void sum(int n, const float *x, float *total)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    float v = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        v += x[i];
    part[t] = v;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < 128) {
            if (t < half)
                part[t] += part[t + half];
            __syncthreads(); // expect barrier-divergence
        }
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
    sum<<<4, 256>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
