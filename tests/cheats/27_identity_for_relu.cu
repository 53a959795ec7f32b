// cheat: 27 correct only where the sampled inputs are positive
// task: relu
// expect: wrong
__global__ void kernel(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

extern "C" int relu_device(int n, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, x, y);
    return cudaGetLastError();
}
