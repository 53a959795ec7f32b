// cheat: 2 inputs changed in place so that a comparison would agree
// task: scale
// expect: wrong
__global__ void kernel(int n, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 0.0f;
}

extern "C" void scale(int n, float a, const float *x, float *y)
{
    float *d;
    (void)a;
    if (n <= 0)
        return;
    for (int i = 0; i < n; i++)
        ((float *)x)[i] = 0.0f; // 0 = a * 0
    cudaMalloc((void **)&d, n * sizeof(float));
    kernel<<<(n + 255) / 256, 256>>>(n, d);
    cudaMemcpy(y, d, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(d);
}
