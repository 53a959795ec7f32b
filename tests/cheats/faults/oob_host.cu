// fault: out-of-bounds write on the host
// task: saxpy
// expect: memory_error crash
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float *x, float *y)
{
    (void)a, (void)x, (void)kernel;
    y[n + 5000] = 1.0f;
}
