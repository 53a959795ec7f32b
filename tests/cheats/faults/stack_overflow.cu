// fault: stack overflow on the host
// task: saxpy
// expect: crash memory_error
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

static int deep(volatile char *above, int level)
{
    volatile char here[4096];
    here[0] = above[0];
    return level ? deep(here, level + 1) + here[0] : 0;
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    char first[1] = {1};
    if (deep(first, 1) == 7)
        return cudaErrorUnknown;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
