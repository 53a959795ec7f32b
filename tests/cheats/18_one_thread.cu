// cheat: 18 one thread of the GPU does it all
// task: saxpy
// expect: wrong
__global__ void kernel(int n, float a, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    kernel<<<1, 1, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
