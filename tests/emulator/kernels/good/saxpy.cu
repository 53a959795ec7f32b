// y = 2x, in a stream of its own, timed with events.
#include <cuda_runtime.h>

__global__ void saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy, milliseconds = -1.0f;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    cudaStreamCreate(&stream);
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc((void **)&dy, n * sizeof(float));
    cudaMemcpyAsync(dx, x, n * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemsetAsync(dy, 0, n * sizeof(float), stream);
    cudaEventRecord(start, stream);
    if (n > 0)
        saxpy<<<(n + 255) / 256, 256, 0, stream>>>(n, 2.0f, dx, dy);
    cudaEventRecord(stop, stream);
    cudaEventSynchronize(stop);
    cudaEventElapsedTime(&milliseconds, start, stop);
    cudaMemcpyAsync(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    if (milliseconds < 0.0f || cudaGetLastError() != cudaSuccess)
        y[0] = -1.0f;
    cudaFree(dx);
    cudaFree(dy);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaStreamDestroy(stream);
}
