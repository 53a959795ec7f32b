// fault: lowers limits, takes one processor and leaves work behind, to slow down what is measured next (row 36)
// task: saxpy
// expect: correct cheat
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    rlimit little = {64, 64};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    setrlimit(RLIMIT_NOFILE, &little);
    sched_setaffinity(0, sizeof one, &one);
    nice(-5);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
