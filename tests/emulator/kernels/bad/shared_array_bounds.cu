// The halo has no room in a shared array, reached by index and by pointer.
#include <cuda_runtime.h>

__global__ void blur(int n, const float *x, float *y)
{
    __shared__ float s[257];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t + 1] = i < n ? x[i] : 0.0f;
    if (t == 0)
        s[0] = 0.0f;
    if (t == 255)
        s[t + 2] = 0.0f; // expect oob-array
    __syncthreads();
    if (i < n)
        y[i] = s[t] + s[t + 2];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    blur<<<(n + 255) / 256, 256>>>(n, dx, dy);
}
