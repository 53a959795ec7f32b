// fault: memory hog on the device
// task: saxpy
// expect: correct crash launch_error
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    void *more;
    for (int i = 0; i < 100000 && cudaMalloc(&more, (size_t)256 << 20) == cudaSuccess; i++)
        ;
    cudaGetLastError();
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
