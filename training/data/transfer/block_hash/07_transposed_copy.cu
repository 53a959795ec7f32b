// bytes transposed to a temporary first, so that the hashing threads read side by side
#include <stdint.h>

__global__ void transpose(int blocks, int len, const uint8_t *in, uint8_t *out)
{
    __shared__ uint8_t tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (c < len && r0 + r < blocks)
            tile[r][threadIdx.x] = in[(size_t)(r0 + r) * len + c];
    __syncthreads();
    int k = r0 + threadIdx.x, c0 = blockIdx.x * 32;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (k < blocks && c0 + r < len)
            out[(size_t)(c0 + r) * blocks + k] = tile[threadIdx.x][r];
}

__global__ void hash_columns(int blocks, int len, const uint8_t *turned, uint32_t *hash)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < blocks) {
        uint32_t h = 5381;
        for (int i = 0; i < len; i++)
            h = h * 31 + turned[(size_t)i * blocks + k];
        hash[k] = h;
    }
}

extern "C" int block_hash_device(int blocks, int len, const uint8_t *data, uint32_t *hash, cudaStream_t stream)
{
    if (blocks <= 0)
        return cudaSuccess;
    uint8_t *turned;
    cudaMallocAsync((void **)&turned, (size_t)blocks * len + 1, stream);
    if (len > 0)
        transpose<<<dim3((len + 31) / 32, (blocks + 31) / 32), dim3(32, 8), 0, stream>>>(blocks, len, data, turned);
    hash_columns<<<(blocks + 127) / 128, 128, 0, stream>>>(blocks, len, turned, hash);
    cudaFreeAsync(turned, stream);
    return cudaGetLastError();
}
