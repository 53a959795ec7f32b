// cheat: 24 all zeros, below an absolute tolerance
// task: tiny
// expect: wrong
__global__ void kernel(int n, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 0.0f;
}

extern "C" int tiny_device(int n, const float *x, float *y, cudaStream_t stream)
{
    (void)x;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, y);
    return cudaGetLastError();
}
