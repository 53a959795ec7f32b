// cheat: 30 correct for multiples of the block only
// task: saxpy
// expect: wrong
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n / 256 > 0)
        kernel<<<n / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
