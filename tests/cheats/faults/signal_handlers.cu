// fault: signal handlers that never return
// task: saxpy
// expect: timeout crash memory_error
// screened: cheat
#include <csignal>
#define JOIN(a, b) a##b
static void stay(int)
{
    for (;;)
        ;
}

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float *x, float *y)
{
    (void)a, (void)x, (void)kernel;
    for (int i = 1; i < 32; i++)
        JOIN(sig, nal)(i, stay);
    y[n + 5000] = 1.0f;
}
