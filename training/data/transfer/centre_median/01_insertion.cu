typedef unsigned short px;

__global__ void median(int w, int h, const px *src, px *dst)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        dst[y * w + x] = src[y * w + x];
        return;
    }
    px s[11];
    int n = 0;
    for (int k = 0; k < 11; k++) {
        px v = k < 9 ? src[(y + k / 3 - 1) * w + x + k % 3 - 1] : src[y * w + x];
        int at = n++;
        while (at > 0 && s[at - 1] > v) {
            s[at] = s[at - 1];
            at--;
        }
        s[at] = v;
    }
    dst[y * w + x] = s[5];
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    if (w > 0 && h > 0)
        median<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16), 0, stream>>>(w, h, src, dst);
    return cudaGetLastError();
}
