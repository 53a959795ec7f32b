// eight lanes a block, each hashes one contiguous eighth; partial hashes combine by powers
#include <stdint.h>

__global__ void lanes(int blocks, int len, const uint8_t *data, uint32_t *hash)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x, k = g / 8, lane = g % 8;
    int each = (len + 7) / 8, first = min(lane * each, len), last = min(first + each, len);
    uint32_t h = 0, p = 1;
    if (k < blocks)
        for (int i = first; i < last; i++) {
            h = h * 31 + data[(size_t)k * len + i];
            p *= 31;
        }
    // (h, p) of a left part followed by (h', p') of a right part is (h * p' + h', p * p')
    for (int d = 1; d < 8; d *= 2) {
        uint32_t h2 = __shfl_down_sync(0xffffffffu, h, d, 8), p2 = __shfl_down_sync(0xffffffffu, p, d, 8);
        if (lane % (2 * d) == 0) {
            h = h * p2 + h2;
            p *= p2;
        }
    }
    if (lane == 0 && k < blocks)
        hash[k] = 5381u * p + h;
}

extern "C" int block_hash_device(int blocks, int len, const uint8_t *data, uint32_t *hash, cudaStream_t stream)
{
    if (blocks > 0)
        lanes<<<(8 * blocks + 255) / 256, 256, 0, stream>>>(blocks, len, data, hash);
    return cudaGetLastError();
}
