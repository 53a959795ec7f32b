// a warp per block: h = 5381 * 31^len + sum of byte * 31^(len-1-i); lanes take every 32nd byte
#include <stdint.h>

__device__ uint32_t power(uint32_t base, int e)
{
    uint32_t r = 1;
    for (; e > 0; e >>= 1, base *= base)
        if (e & 1) r *= base;
    return r;
}

__global__ void warp_hash(int blocks, int len, const uint8_t *data, uint32_t *hash, uint32_t p32)
{
    int k = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (k >= blocks) return;
    // Horner in steps of 32 over the bytes that this lane has, counted from the end
    uint32_t h = 0;
    int first = (len - 1 - lane) % 32;
    for (int i = first; len > lane && i < len; i += 32)
        h = h * p32 + data[(size_t)k * len + i];
    h *= power(31, lane);
    if (lane == 0) h += 5381u * power(31, len);
    for (int m = 16; m; m >>= 1) h += __shfl_xor_sync(0xffffffffu, h, m);
    if (lane == 0) hash[k] = h;
}

extern "C" int block_hash_device(int blocks, int len, const uint8_t *data, uint32_t *hash, cudaStream_t stream)
{
    uint32_t p32 = 1;
    for (int i = 0; i < 32; i++) p32 *= 31;
    if (blocks > 0)
        warp_hash<<<(blocks + 7) / 8, 256, 0, stream>>>(blocks, len, data, hash, p32);
    return cudaGetLastError();
}
