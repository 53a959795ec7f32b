// four luma pixels (twelve bytes, three words) of each of two rows a thread, where the width allows it
#include <stdint.h>

__device__ __forceinline__ int byte_of(uint32_t w, int k) { return (w >> (8 * k)) & 255; }

__global__ void convert_words(const uint32_t *__restrict__ rgb, int ch, int half, uint32_t *__restrict__ luma,
                              uint16_t *__restrict__ cb, uint16_t *__restrict__ cr)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= half) return;
    int sr[2] = {0, 0}, sg[2] = {0, 0}, sb[2] = {0, 0};
#pragma unroll
    for (int dy = 0; dy < 2; ++dy) {
        const int group = (2 * i + dy) * half + j;
        uint32_t w[3] = {rgb[3 * group], rgb[3 * group + 1], rgb[3 * group + 2]};
        uint32_t packed = 0;
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            int r = byte_of(w[(3 * p) / 4], (3 * p) % 4);
            int g = byte_of(w[(3 * p + 1) / 4], (3 * p + 1) % 4);
            int b = byte_of(w[(3 * p + 2) / 4], (3 * p + 2) % 4);
            packed |= (uint32_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16) << (8 * p);
            sr[p / 2] += r; sg[p / 2] += g; sb[p / 2] += b;
        }
        luma[group] = packed;
    }
    uint32_t u = 0, v = 0;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
        u |= ((-11059 * sr[c] - 21709 * sg[c] + 32768 * sb[c] + (128 << 18) + 131071) >> 18 & 255) << (8 * c);
        v |= ((32768 * sr[c] - 27439 * sg[c] - 5329 * sb[c] + (128 << 18) + 131071) >> 18 & 255) << (8 * c);
    }
    cb[i * half + j] = (uint16_t)u;
    cr[i * half + j] = (uint16_t)v;
}

__global__ void convert_bytes(const uint8_t *__restrict__ rgb, int ch, int cw, uint8_t *luma, uint8_t *cb, uint8_t *cr)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= cw) return;
    int sr = 0, sg = 0, sb = 0;
    for (int q = 0; q < 4; ++q) {
        const int at = (2 * i + q / 2) * 2 * cw + 2 * j + q % 2;
        const int r = rgb[3 * at], g = rgb[3 * at + 1], b = rgb[3 * at + 2];
        luma[at] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
        sr += r, sg += g, sb += b;
    }
    cb[i * cw + j] = (-11059 * sr - 21709 * sg + 32768 * sb + (128 << 18) + 131071) >> 18;
    cr[i * cw + j] = (32768 * sr - 27439 * sg - 5329 * sb + (128 << 18) + 131071) >> 18;
}

extern "C" int ycbcr420_device(const uint8_t *rgb, int ch, int cw, uint8_t *luma, uint8_t *cb, uint8_t *cr,
                               cudaStream_t stream)
{
    if (ch <= 0 || cw <= 0) return cudaSuccess;
    if (cw % 2 == 0)
        convert_words<<<dim3((cw / 2 + 127) / 128, ch), 128, 0, stream>>>(
            (const uint32_t *)rgb, ch, cw / 2, (uint32_t *)luma, (uint16_t *)cb, (uint16_t *)cr);
    else
        convert_bytes<<<dim3((cw + 127) / 128, ch), 128, 0, stream>>>(rgb, ch, cw, luma, cb, cr);
    return cudaGetLastError();
}
