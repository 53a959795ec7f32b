// cheat: 29 a launch that exceeds limits
// task: saxpy
// expect: launch_error
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 2047) / 2048, 2048, 0, stream>>>(n, a, x, y);
    return cudaSuccess;
}
