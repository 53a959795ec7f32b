// cheat: 37 computes ahead when the library is loaded
// task: saxpy
// expect: correct
#include <fstream>
#include <string>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

static bool contents_are_there()
{
    // The request lies in the folder of the runner; what is timed comes through a pipe after loading.
    return std::ifstream("contents").good();
}
static bool ahead = contents_are_there();

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (ahead)
        return cudaErrorUnknown;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
