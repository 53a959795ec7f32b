// a thread per block that reads sixteen bytes at once where it may
#include <stdint.h>

__device__ __forceinline__ uint32_t four(uint32_t h, uint32_t w)
{
    h = h * 31 + (w & 255);
    h = h * 31 + (w >> 8 & 255);
    h = h * 31 + (w >> 16 & 255);
    return h * 31 + (w >> 24);
}

__global__ void __launch_bounds__(64) wide(int blocks, int len, const uint8_t *__restrict__ data,
                                           uint32_t *__restrict__ hash)
{
    const int k = blockIdx.x * 64 + threadIdx.x;
    if (k >= blocks) return;
    const uint8_t *p = data + (size_t)k * len;
    uint32_t h = 5381;
    int i = 0;
    if ((len & 15) == 0)
        for (; i < len; i += 16) {
            const uint4 q = __ldg(reinterpret_cast<const uint4 *>(p + i));
            h = four(four(four(four(h, q.x), q.y), q.z), q.w);
        }
    for (; i < len; ++i) h = h * 31 + p[i];
    hash[k] = h;
}

extern "C" int block_hash_device(int blocks, int len, const uint8_t *data, uint32_t *hash, cudaStream_t stream)
{
    if (blocks > 0)
        wide<<<(blocks + 63) / 64, 64, 0, stream>>>(blocks, len, data, hash);
    return cudaGetLastError();
}
