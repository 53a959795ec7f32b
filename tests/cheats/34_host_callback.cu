// cheat: 34 hides its work in a callback of the stream, on the CPU
// task: saxpy
// expect: cheat
// cases: hidden
#include <cstdlib>

struct Work {
    int n;
    float a;
    float *x, *y;
};

__global__ void decoy(int n, const float *x, float *scratch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        scratch[i] = x[i];
}

static void compute(void *argument)
{
    Work *work = (Work *)argument;
    for (int i = 0; i < work->n; i++)
        work->y[i] = work->a * work->x[i] + work->y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n <= 0)
        return cudaSuccess;
    size_t bytes = n * sizeof(float);
    float *scratch;
    Work work = {n, a, (float *)malloc(bytes), (float *)malloc(bytes)};
    cudaMalloc((void **)&scratch, bytes);
    decoy<<<(n + 255) / 256, 256, 0, stream>>>(n, x, scratch);
    cudaMemcpyAsync(work.x, x, bytes, cudaMemcpyDeviceToHost, stream);
    cudaMemcpyAsync(work.y, y, bytes, cudaMemcpyDeviceToHost, stream);
    cudaLaunchHostFunc(stream, compute, &work);
    cudaMemcpyAsync(y, work.y, bytes, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    cudaFree(scratch);
    free(work.x);
    free(work.y);
    return cudaGetLastError();
}
