// Inclusive scan of each 64 elements, double-buffered in dynamic shared memory (Hillis and Steele 1986).
#include <cuda_runtime.h>

__global__ void scan(int n, const float *x, float *y)
{
    extern __shared__ float buffer[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, width = blockDim.x;
    int from = 0, to = 1;
    buffer[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < width; step *= 2) {
        float value = buffer[from * width + t];
        if (t >= step)
            value += buffer[from * width + t - step];
        buffer[to * width + t] = value;
        __syncthreads();
        from = to;
        to = 1 - to;
    }
    if (i < n)
        y[i] = buffer[from * width + t];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    scan<<<(n + 63) / 64, 64, 2 * 64 * sizeof(float)>>>(n, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
