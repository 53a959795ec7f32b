// 64 blocks a thread block; 64 bytes of each at a time come in side by side, padded rows in shared memory
#include <stdint.h>
#define T 64

__global__ void staged(int blocks, int len, const uint8_t *data, uint32_t *hash)
{
    __shared__ uint8_t s[T][T + 4];
    int first = blockIdx.x * T;
    uint32_t h = 5381;
    for (int base = 0; base < len; base += T) {
        int width = min(T, len - base);
        for (int r = 0; r < T && first + r < blocks; r++)
            if (threadIdx.x < width)
                s[r][threadIdx.x] = data[(first + r) * len + base + threadIdx.x];
        __syncthreads();
        if (first + threadIdx.x < blocks)
            for (int i = 0; i < width; i++)
                h = h * 31 + s[threadIdx.x][i];
        __syncthreads();
    }
    if (first + threadIdx.x < blocks)
        hash[first + threadIdx.x] = h;
}

extern "C" int block_hash_device(int blocks, int len, const uint8_t *data, uint32_t *hash, cudaStream_t stream)
{
    if (blocks > 0)
        staged<<<(blocks + T - 1) / T, T, 0, stream>>>(blocks, len, data, hash);
    return cudaGetLastError();
}
