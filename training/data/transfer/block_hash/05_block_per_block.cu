// a thread block of 128 per data block, powers recomputed by each thread, shared tree
#include <stdint.h>

__global__ void tree(int blocks, int len, const uint8_t *data, uint32_t *hash)
{
    __shared__ uint32_t s[128];
    int t = threadIdx.x, k = blockIdx.x;
    uint32_t sum = 0;
    for (int i = t; i < len; i += 128) {
        uint32_t p = 1;
        for (int e = len - 1 - i; e > 0; e--)
            p *= 31;
        sum += p * data[k * len + i];
    }
    if (t == 0) {
        uint32_t p = 5381;
        for (int e = 0; e < len; e++)
            p *= 31;
        sum += p;
    }
    s[t] = sum;
    __syncthreads();
    for (int d = 64; d > 0; d /= 2) {
        if (t < d)
            s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0)
        hash[k] = s[0];
}

extern "C" int block_hash_device(int blocks, int len, const uint8_t *data, uint32_t *hash, cudaStream_t stream)
{
    if (blocks > 0)
        tree<<<blocks, 128, 0, stream>>>(blocks, len, data, hash);
    return cudaGetLastError();
}
