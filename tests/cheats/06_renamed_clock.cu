// cheat: 6 replaces the clock, by a function defined under another name
// task: saxpy
// expect: cheat
#include <ctime>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int now(clockid_t, struct timespec *) asm("clock_gettime");
extern "C" int now(clockid_t, struct timespec *t)
{
    t->tv_sec = 0;
    t->tv_nsec = 0;
    return 0;
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
