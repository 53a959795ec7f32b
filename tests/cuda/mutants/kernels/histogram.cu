// task: histogram
#include <cstdint>
__global__ void histogram_kernel(const uint8_t *bytes, size_t len, uint32_t *counts)
{
    __shared__ uint32_t own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * 256ul + threadIdx.x; i < len; i += gridDim.x * 256ul)
        atomicAdd(&own[bytes[i]], 1u);
    __syncthreads();
    if (own[threadIdx.x] > 0)
        atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

extern "C" int histogram_device(const uint8_t *bytes, size_t len, uint32_t *counts, cudaStream_t stream)
{
    if (len > 0)
        histogram_kernel<<<(len + 255) / 256, 256, 0, stream>>>(bytes, len, counts);
    return cudaGetLastError();
}
