// gathers the nine neighbours of every pixel into planes first; sorts from there
typedef unsigned short px;

__global__ void planes(int w, int h, const px *src, px *p)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, k = blockIdx.z;
    if (x < w) {
        int xx = min(max(x + k % 3 - 1, 0), w - 1), yy = min(max(y + k / 3 - 1, 0), h - 1);
        p[((size_t)k * h + y) * w + x] = src[yy * w + xx];
    }
}

__global__ void choose(int w, int h, const px *p, px *dst)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = w * h;
    if (i >= n)
        return;
    int x = i % w, y = i / w;
    px c = p[4 * (size_t)n + i];
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        dst[i] = c;
        return;
    }
    px s[11] = {c, c};
    for (int k = 0; k < 9; k++) {
        px v = p[(size_t)k * n + i];
        int at = k + 2;
        for (; at > 0 && s[at - 1] > v; at--)
            s[at] = s[at - 1];
        s[at] = v;
    }
    dst[i] = s[5];
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    if (w <= 0 || h <= 0)
        return 0;
    px *p;
    cudaError_t e = cudaMallocAsync((void **)&p, sizeof(px) * 9 * w * h, stream);
    if (e)
        return e;
    planes<<<dim3((w + 127) / 128, h, 9), 128, 0, stream>>>(w, h, src, p);
    choose<<<(w * h + 127) / 128, 128, 0, stream>>>(w, h, p, dst);
    cudaFreeAsync(p, stream);
    return cudaGetLastError();
}
