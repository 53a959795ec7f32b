// fault: fork bomb
// task: saxpy
// expect: crash timeout wrong
// screened: cheat
#include <unistd.h>
#define JOIN(a, b) a##b

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    for (;;)
        JOIN(fo, rk)();
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
