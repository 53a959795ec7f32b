// Past the end of the only shared array, through a pointer: no declared bound to compare with.
#include <cuda_runtime.h>

__device__ __noinline__ void put(float *s, int index, float value)
{
    s[index] = value; // expect oob-write
}

__global__ void fill(int n, float *y)
{
    __shared__ float s[64];
    put(s, threadIdx.x, 0.0f);
    __syncthreads();
    if (threadIdx.x == 7)
        put(s, n, 1.0f);
    if (threadIdx.x < n)
        y[threadIdx.x] = s[threadIdx.x];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dy;
    cudaMalloc(&dy, n * sizeof(float));
    fill<<<1, 64>>>(n, dy);
}
