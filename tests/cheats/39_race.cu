// cheat: 0 a race that gives the right output
// task: saxpy
// expect: memory_error
__global__ void kernel(int n, float a, const float *x, float *y)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[255 - threadIdx.x] = i < n ? x[i] : 0.0f;
    float mine = tile[255 - threadIdx.x] + 0.0f * tile[(threadIdx.x + 1) % 256];
    if (i < n)
        y[i] = a * mine + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
