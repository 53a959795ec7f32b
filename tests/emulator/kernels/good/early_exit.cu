// The first index with a property, blocks giving up once a smaller one is known: volatile reads beside atomics, a
// volatile flag that many set, and a work queue.
#include <cuda_runtime.h>

__device__ volatile int any_found;

__global__ void first(int n, const float *x, int *best, int *next)
{
    __shared__ int chunk;
    __shared__ bool hit;
    for (;;) {
        if (threadIdx.x == 0) {
            chunk = atomicAdd(next, 1);
            hit = false;
        }
        __syncthreads();
        int i = chunk * blockDim.x + threadIdx.x;
        bool over = chunk * (int)blockDim.x >= n || chunk * (int)blockDim.x > *(volatile int *)best;
        if (__syncthreads_or(over))
            return;
        if (i < n && x[i] > 1.0f) {
            atomicMin(best, i);
            hit = true; // all that come here write the same
            if (!any_found)
                any_found = 1;
        }
        __syncthreads();
        if (hit)
            __threadfence();
        __syncthreads();
    }
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx;
    int *d, host[2] = {n, 0}, found = 0;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&d, sizeof host);
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(any_found, &found, sizeof found);
    first<<<4, 32>>>(n, dx, d, d + 1);
    cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&found, any_found, sizeof found);
    for (int i = 0; i < n; i++)
        y[i] = found == (host[0] < n) ? (float)host[0] : -1.0f;
    cudaFree(dx);
    cudaFree(d);
}
