// task: dot
__global__ void dot_kernel(const double *u, const double *v, long n, double *result)
{
    __shared__ double part[256];
    double sum = 0.0;
    for (long i = blockIdx.x * 256L + threadIdx.x; i < n; i += gridDim.x * 256L)
        sum += u[i] * v[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(result, part[0]);
}

extern "C" int dot_device(const double *u, const double *v, long n, double *result, cudaStream_t stream)
{
    cudaMemsetAsync(result, 0, sizeof(double), stream);
    if (n > 0)
        dot_kernel<<<(n + 255) / 256, 256, 0, stream>>>(u, v, n, result);
    return cudaGetLastError();
}
