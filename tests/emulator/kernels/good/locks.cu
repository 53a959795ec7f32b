// A spin lock around a plain read-modify-write, taken by every thread of every block; and a flag many threads set.
#include <cuda_runtime.h>

__device__ int lock = 0;

__global__ void locked(int n, int *counter, int *flag)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    *flag = 1; // all write the same
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            *counter = *counter + 1;
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}

extern "C" void f(int n, const float *x, float *y)
{
    int *d, host[2];
    cudaMalloc(&d, 2 * sizeof(int));
    cudaMemset(d, 0, 2 * sizeof(int));
    locked<<<(n + 39) / 40, 40>>>(n, d, d + 1);
    cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++)
        y[i] = x[i] + (host[0] - n) + (host[1] - 1);
    cudaFree(d);
}
