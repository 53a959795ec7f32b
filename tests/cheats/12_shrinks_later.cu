// cheat: 12 does less once the first calls are over
// task: saxpy
// expect: wrong
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    static int calls;
    int part = ++calls > 3 ? n / 2 : n;
    if (part > 0)
        kernel<<<(part + 255) / 256, 256, 0, stream>>>(part, a, x, y);
    return cudaGetLastError();
}
