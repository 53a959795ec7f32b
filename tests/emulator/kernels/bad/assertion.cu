// An assertion in device code.
#include <cassert>
#include <cuda_runtime.h>

__global__ void check(int n, const float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i < n); // expect device-assert
    if (i == 2000 && x[0] == 1.0f)
        __trap();
}

extern "C" void f(int n, const float *x, float *y)
{
    check<<<(n + 255) / 256, 256>>>(n, x);
}
