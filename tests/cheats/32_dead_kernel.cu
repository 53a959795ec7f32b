// cheat: 32 a kernel that looks good and is never launched
// task: saxpy
// expect: correct
// note: what no launch reaches counts for no feature (a test of this folder compares them)
__global__ void dead(int n, const float4 *x, float4 *y)
{
    __shared__ float4 tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = x[i];
    __syncthreads();
    for (int k = 0; k < n; k++)
        y[i].x = tile[threadIdx.x].x * 2.0f + y[i].x;
}

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
