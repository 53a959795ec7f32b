// The mask names half of the lanes that the shuffle reads.
#include <cuda_runtime.h>

__global__ void sum(int n, const float *x, float *total)
{
    int t = threadIdx.x;
    float v = t < n ? x[t] : 0.0f;
    if (t < 16)
        for (int half = 16; half > 0; half /= 2)
            v += __shfl_down_sync(0x0000ffffu, v, half); // expect shuffle-inactive-lane
    if (t == 0)
        *total = v;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *total;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<1, 32>>>(n, dx, total);
    cudaMemcpy(y, total, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(total);
}
