#include <stdint.h>

__global__ void luma_kernel(const uint8_t *rgb, int n, uint8_t *luma)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n)
        luma[at] = (19595 * rgb[3 * at] + 38470 * rgb[3 * at + 1] + 7471 * rgb[3 * at + 2] + 32768) >> 16;
}

template <int R, int G, int B>
__global__ void chroma_kernel(const uint8_t *rgb, int ch, int cw, uint8_t *out)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= ch * cw)
        return;
    int i = k / cw, j = k % cw, w = 2 * cw, sum = (128 << 18) + 131071;
    for (int q = 0; q < 4; q++) {
        int at = (2 * i + q / 2) * w + 2 * j + q % 2;
        sum += R * rgb[3 * at] + G * rgb[3 * at + 1] + B * rgb[3 * at + 2];
    }
    out[k] = sum >> 18;
}

extern "C" int ycbcr420_device(const uint8_t *rgb, int ch, int cw, uint8_t *luma, uint8_t *cb, uint8_t *cr,
                               cudaStream_t stream)
{
    int chroma = ch * cw;
    if (chroma > 0) {
        luma_kernel<<<(4 * chroma + 255) / 256, 256, 0, stream>>>(rgb, 4 * chroma, luma);
        chroma_kernel<-11059, -21709, 32768><<<(chroma + 255) / 256, 256, 0, stream>>>(rgb, ch, cw, cb);
        chroma_kernel<32768, -27439, -5329><<<(chroma + 255) / 256, 256, 0, stream>>>(rgb, ch, cw, cr);
    }
    return cudaGetLastError();
}
