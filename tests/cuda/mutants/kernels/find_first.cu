// task: find_first
__global__ void find_kernel(const int *haystack, int n, int needle, int *result)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && haystack[i] == needle)
        atomicMin((unsigned int *)result, (unsigned int)i);
}

extern "C" int find_first_device(const int *haystack, int n, int needle, int *result, cudaStream_t stream)
{
    cudaMemsetAsync(result, 0xff, sizeof(int), stream);
    if (n > 0)
        find_kernel<<<(n + 127) / 128, 128, 0, stream>>>(haystack, n, needle, result);
    return cudaGetLastError();
}
