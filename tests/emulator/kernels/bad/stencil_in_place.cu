// Blocks read what their neighbours overwrite.
#include <cuda_runtime.h>

__global__ void blur(int n, float *a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    if (i > 0 && i < n - 1)
        v = a[i - 1] + a[i + 1]; // expect race
    __syncthreads();
    if (i > 0 && i < n - 1)
        a[i] = v; // expect race
}

extern "C" void f(int n, const float *x, float *y)
{
    float *a;
    cudaMalloc(&a, n * sizeof(float));
    cudaMemcpy(a, x, n * sizeof(float), cudaMemcpyHostToDevice);
    blur<<<(n + 255) / 256, 256>>>(n, a);
    cudaMemcpy(y, a, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(a);
}
