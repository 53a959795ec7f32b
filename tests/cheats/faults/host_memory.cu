// fault: memory hog on the host
// task: saxpy
// expect: crash
#include <cstdlib>
#include <cstring>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    for (;;) {
        void *more = malloc(64 << 20);
        if (more)
            memset(more, 1, 64 << 20);
    }
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
