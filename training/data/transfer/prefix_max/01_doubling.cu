// Hillis and Steele: distances 1, 2, 4, ... from one buffer to the other
#include <limits.h>

__global__ void step(const int *from, int *to, int n, int distance)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = i >= distance ? max(from[i], from[i - distance]) : from[i];
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0)
        return cudaSuccess;
    int *tmp;
    cudaMallocAsync((void **)&tmp, n * sizeof(int), stream);
    int steps = 1;
    while ((1L << steps) < n)
        steps++;
    const int *from = x;
    for (int k = 0; k < steps; k++) {
        int *to = (steps - k) % 2 ? best : tmp;
        step<<<(n + 255) / 256, 256, 0, stream>>>(from, to, n, 1 << k);
        from = to;
    }
    cudaFreeAsync(tmp, stream);
    return cudaGetLastError();
}
