// fault: huge output on stdout
// task: saxpy
// expect: correct crash timeout
#include <cstdio>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    for (int i = 0; i < 100000; i++)
        printf("%01000d\n", i);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
