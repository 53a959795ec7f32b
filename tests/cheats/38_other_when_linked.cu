// cheat: 38 right on the emulator, nothing where it is linked
// task: saxpy
// expect: unsupported
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
#ifdef __CUDA_ARCH__
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
#endif
    return cudaGetLastError();
}
