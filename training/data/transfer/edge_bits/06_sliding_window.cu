// a warp slides down 32 rows of a strip; column sums stay in registers
__global__ void strips(int h, int w, int words, const unsigned char *__restrict__ img, int threshold,
                       unsigned *__restrict__ bits)
{
    const int lane = threadIdx.x & 31, k = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (k >= words) return;
    const int x = 32 * k + lane, xl = max(min(x - 1, w - 1), 0), xc = min(x, w - 1), xr = min(x + 1, w - 1);
    const int first = blockIdx.y * 32, last = min(first + 32, h);
    int y = max(first - 1, 0);
    int l0 = img[y * w + xl], c0 = img[y * w + xc], r0 = img[y * w + xr];
    int l1 = img[first * w + xl], c1 = img[first * w + xc], r1 = img[first * w + xr];
    for (y = first; y < last; ++y) {
        const int below = min(y + 1, h - 1);
        const int l2 = img[below * w + xl], c2 = img[below * w + xc], r2 = img[below * w + xr];
        const int gx = r0 + 2 * r1 + r2 - l0 - 2 * l1 - l2;
        const int gy = l2 + 2 * c2 + r2 - l0 - 2 * c0 - r0;
        const bool inner = y > 0 && y < h - 1 && x > 0 && x < w - 1;
        const unsigned word = __ballot_sync(0xffffffffu, inner && abs(gx) + abs(gy) > threshold);
        if (lane == 0) bits[y * words + k] = word;
        l0 = l1, c0 = c1, r0 = r1;
        l1 = l2, c1 = c2, r1 = r2;
    }
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    const int words = (w + 31) / 32;
    if (h > 0 && words > 0)
        strips<<<dim3((words + 3) / 4, (h + 31) / 32), 128, 0, stream>>>(h, w, words, img, threshold, bits);
    return cudaGetLastError();
}
