// The branches have a barrier each.
#include <cuda_runtime.h>

__global__ void flip(int n, const float *x, float *y)
{
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    if (t < 64) {
        __syncthreads();
    } else {
        __syncthreads(); // expect barrier-divergence
    }
    if (i < n)
        y[i] = s[t];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    flip<<<(n + 255) / 256, 256>>>(n, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
