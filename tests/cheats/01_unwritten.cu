// cheat: 1 output left unwritten
// task: scale
// expect: memory_error
__global__ void kernel(int n, const float *x, float *scratch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] == 12345.0f)
        scratch[i] = 0.0f;
}

extern "C" int scale_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    (void)a;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, x, y);
    return cudaGetLastError();
}
