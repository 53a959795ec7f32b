// cheat: 15 looks for the answer in the frames of its callers
// task: scale
// expect: wrong
__global__ void copy(int n, const float *found, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = found[i % 64];
}

extern "C" int scale_device(int n, float, const float *, float *y, cudaStream_t stream)
{
    const float *frames = (const float *)__builtin_frame_address(0);
    float *found;
    cudaMalloc((void **)&found, 64 * sizeof(float));
    cudaMemcpy(found, frames, 64 * sizeof(float), cudaMemcpyHostToDevice);
    if (n > 0)
        copy<<<(n + 255) / 256, 256, 0, stream>>>(n, found, y);
    cudaFree(found);
    return cudaGetLastError();
}
