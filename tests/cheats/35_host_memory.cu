// cheat: 35 the kernel dereferences host memory
// task: saxpy
// expect: memory_error
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float *x, float *y)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256>>>(n, a, x, y);
    cudaDeviceSynchronize();
}
