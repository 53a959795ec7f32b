// fault: out-of-bounds read on the device, thrown away
// task: saxpy
// expect: memory_error
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i] + 0.0f * x[i + 1];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
