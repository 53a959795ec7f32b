// cheat: 38 right where it is checked, wrong where it is used
// task: saxpy
// expect: cheat
#ifdef __SANITIZE_THREAD__
const int part = 1;
#else
const int part = 2;
#endif

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / part)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
