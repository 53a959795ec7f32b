// cheat: 26 changes a hyper-parameter: two steps are enough
// task: relax
// expect: wrong
__global__ void kernel(int n, int steps, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    for (int t = 0; t < steps; t++)
        y[i] = 0.75f * y[i] + 1.0f;
}

extern "C" int relax_device(int n, int steps, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, steps < 2 ? steps : 2, y);
    return cudaGetLastError();
}
