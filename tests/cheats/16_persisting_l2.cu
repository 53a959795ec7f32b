// cheat: 16 pins its data in the part of the L2 that is kept
// task: saxpy
// expect: unsupported
// gpu: correct
// note: the emulator has no cache; on a GPU what is kept in the L2 is reset and flushed before each timed call
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    cudaStreamAttrValue window = {};
    window.accessPolicyWindow.base_ptr = (void *)x;
    window.accessPolicyWindow.num_bytes = n > 0 ? n * sizeof(float) : 0;
    window.accessPolicyWindow.hitRatio = 1.0f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
