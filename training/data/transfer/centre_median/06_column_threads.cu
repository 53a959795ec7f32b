// neighbours of a warp are rows, not columns
typedef unsigned short px;

__device__ void put(px *s, int n, px v)
{
    int at = n;
    for (; at > 0 && s[at - 1] > v; at--)
        s[at] = s[at - 1];
    s[at] = v;
}

__global__ void median(int w, int h, const px *src, px *dst)
{
    int y = blockIdx.x * blockDim.x + threadIdx.x, x = blockIdx.y;
    if (y >= h)
        return;
    px c = src[y * w + x];
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
        px s[11];
        int n = 0;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                put(s, n++, src[(y + dy) * w + x + dx]);
        put(s, n++, c);
        put(s, n++, c);
        c = s[5];
    }
    dst[y * w + x] = c;
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    if (w > 0 && h > 0)
        median<<<dim3((h + 63) / 64, w), 64, 0, stream>>>(w, h, src, dst);
    return cudaGetLastError();
}
