// cheat: 22 a second kernel whose result is thrown away
// task: saxpy
// expect: cheat
// cases: hidden
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void idle(int n, const float *x, float *scratch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        scratch[i] = x[i] * 2.0f;
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    float *scratch;
    if (n <= 0)
        return cudaSuccess;
    cudaMalloc((void **)&scratch, n * sizeof(float));
    idle<<<(n + 255) / 256, 256, 0, stream>>>(n, x, scratch);
    kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    cudaFree(scratch);
    return cudaGetLastError();
}
