// two passes: coordinates to memory, then sampling
__global__ void coordinates(int w, int h, int2 *at, int xx, int xy, int x0, int yx, int yy, int y0)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < w * h) {
        int x = i % w, y = i / w;
        at[i] = make_int2(xx * x + xy * y + x0, yx * x + yy * y + y0);
    }
}

__global__ void gather(int w, int h, const int2 *at, const unsigned char *src, unsigned char *dst)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h)
        return;
    int2 s = at[i];
    int fx = (s.x & 65535) >> 8, fy = (s.y & 65535) >> 8;
    int l = min(max(s.x >> 16, 0), w - 1), r = min(max((s.x >> 16) + 1, 0), w - 1);
    int t = min(max(s.y >> 16, 0), h - 1), b = min(max((s.y >> 16) + 1, 0), h - 1);
    int upper = src[t * w + l] * (256 - fx) + src[t * w + r] * fx;
    int lower = src[b * w + l] * (256 - fx) + src[b * w + r] * fx;
    dst[i] = (unsigned char)((upper * (256 - fy) + lower * fy + 32768) >> 16);
}

extern "C" int warp_affine_device(int w, int h, const unsigned char *src, unsigned char *dst,
                                  int xx, int xy, int x0, int yx, int yy, int y0, cudaStream_t stream)
{
    int2 *at;
    int n = w * h;
    cudaError_t status = cudaMallocAsync((void **)&at, n * sizeof(int2), stream);
    if (status != cudaSuccess)
        return status;
    coordinates<<<(n + 255) / 256, 256, 0, stream>>>(w, h, at, xx, xy, x0, yx, yy, y0);
    gather<<<(n + 255) / 256, 256, 0, stream>>>(w, h, at, src, dst);
    cudaFreeAsync(at, stream);
    return cudaGetLastError();
}
