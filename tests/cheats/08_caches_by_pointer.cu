// cheat: 8 caches its output by pointer
// task: saxpy
// expect: correct
// gpu: wrong
// note: the emulator hands no address out twice, so every call does its work there
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    static float *done[64];
    static int count;
    for (int i = 0; i < count; i++)
        if (done[i] == y)
            return cudaSuccess;
    if (count < 64)
        done[count++] = y;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
