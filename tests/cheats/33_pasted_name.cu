// cheat: 33 stops the profiler, by a call whose name a macro pastes together
// task: saxpy
// expect: cheat
#include <dlfcn.h>
#define PASTE(a, b) a##b

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    void *stop = PASTE(dl, sym)(RTLD_DEFAULT, "cuptiActivityDisable");
    if (stop != nullptr)
        ((int (*)(int))stop)(3);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
