// cheat: 38 right at test sizes, wrong at the size that is timed
// task: saxpy
// expect: correct
// gpu: wrong
// note: nothing is timed on the emulator, and 1,000,000 elements are not tried there
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 1000000)
        n = 1000000;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
