// cheat: 23 silently computes with the mantissa of TF32
// task: saxpy
// expect: wrong

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * __int_as_float(__float_as_int(x[i]) & 0xffffe000) + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
