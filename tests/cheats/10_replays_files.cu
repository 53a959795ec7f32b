// cheat: 10 replays through files of an earlier run
// task: saxpy
// expect: correct
// cases: hidden
#include <cstdio>
#include <fstream>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    // Wrong as soon as anything of an earlier process is found: that it passes shows that nothing is.
    static bool first = true;
    if (first && std::ifstream("/tmp/replay").good())
        return cudaErrorUnknown;
    first = false;
    std::ofstream("/tmp/replay") << n;
    std::ofstream("replay") << n;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
