// 32 x 16 pixels a block with their halo in shared memory, then the vote
#define TY 16

__global__ void __launch_bounds__(32 * TY) edges(int h, int w, int words, const unsigned char *__restrict__ img,
                                                 int threshold, unsigned *__restrict__ bits)
{
    __shared__ unsigned char s[TY + 2][36];
    int x0 = blockIdx.x * 32 - 1, y0 = blockIdx.y * TY - 1;
    for (int r = threadIdx.y; r < TY + 2; r += TY)
        for (int c = threadIdx.x; c < 34; c += 32) {
            int x = x0 + c, y = y0 + r;
            s[r][c] = x >= 0 && x < w && y >= 0 && y < h ? img[y * w + x] : 0;
        }
    __syncthreads();
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * TY + threadIdx.y;
    const unsigned char *a = &s[threadIdx.y][threadIdx.x], *b = a + 36, *c = b + 36;
    int gx = a[2] + 2 * b[2] + c[2] - a[0] - 2 * b[0] - c[0];
    int gy = c[0] + 2 * c[1] + c[2] - a[0] - 2 * a[1] - a[2];
    bool inner = x > 0 && x < w - 1 && y > 0 && y < h - 1;
    unsigned word = __ballot_sync(0xffffffffu, inner && abs(gx) + abs(gy) > threshold);
    if (threadIdx.x == 0 && y < h)
        bits[y * words + blockIdx.x] = word;
}

extern "C" int edge_bits_device(int h, int w, const unsigned char *img, int threshold, unsigned *bits,
                                cudaStream_t stream)
{
    int words = (w + 31) / 32;
    if (h > 0 && words > 0)
        edges<<<dim3(words, (h + TY - 1) / TY), dim3(32, TY), 0, stream>>>(h, w, words, img, threshold, bits);
    return cudaGetLastError();
}
