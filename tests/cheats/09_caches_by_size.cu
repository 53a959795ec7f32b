// cheat: 9 caches its output by size and first element
// task: saxpy
// expect: wrong
#include <map>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    static std::map<int, int> seen;
    if (n > 0 && seen[n > 200]++)
        return cudaSuccess;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
