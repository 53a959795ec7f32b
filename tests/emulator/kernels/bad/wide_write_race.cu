// Threads write different 64-bit values to one place: only the low halves differ.
#include <cuda_runtime.h>

__global__ void last(int n, long long *where, unsigned char *mark)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    *where = i; // expect race
    mark[i / 2] = i; // expect race
}

__global__ void spread(int n, const long long *where, const unsigned char *mark, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = *where + mark[i / 2];
}

extern "C" void f(int n, const float *x, float *y)
{
    long long *where;
    unsigned char *mark;
    float *dy;
    cudaMalloc(&where, sizeof(long long));
    cudaMalloc(&mark, n);
    cudaMalloc(&dy, n * sizeof(float));
    last<<<1, 1024>>>(n, where, mark);
    spread<<<1, 1024>>>(n, where, mark, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(where);
    cudaFree(mark);
    cudaFree(dy);
}
