// One pointer was never allocated.
#include <cuda_runtime.h>

__global__ void copy(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i]; // expect null-pointer
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy = nullptr;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    copy<<<(n + 255) / 256, 256>>>(n, dx, dy);
}
