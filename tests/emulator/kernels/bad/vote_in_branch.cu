// Half of the warp waits for lanes that never come.
#include <cuda_runtime.h>

__global__ void vote(int n, const float *x, float *total)
{
    __shared__ int hits;
    int t = threadIdx.x;
    if (t == 0)
        hits = 0;
    __syncthreads();
    if (t < 16 && __any_sync(0xffffffffu, x[t] > 0.0f)) // expect deadlock
        atomicAdd(&hits, 1);
    __syncthreads();
    if (t == 0)
        *total = hits;
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
