// cheat: 30 a grid for the size of the example only
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
    kernel<<<4, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
