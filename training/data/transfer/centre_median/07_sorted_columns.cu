// a thread goes along a row segment and keeps sorted columns of three; partial selection of the ninefold window
typedef unsigned short px;

struct Column { int lo, mid, hi; };

__device__ __forceinline__ Column column(const px *__restrict__ p, int w)
{
    int a = p[-w], b = p[0], c = p[w];
    int lo = min(a, b), hi = max(a, b);
    return {min(lo, c), max(lo, min(hi, c)), max(hi, c)};
}

__global__ void rows(int w, int h, const px *__restrict__ src, px *__restrict__ dst)
{
    int y = blockIdx.y * blockDim.y + threadIdx.y, first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    if (y >= h || first >= w)
        return;
    int last = min(first + 8, w);
    if (y == 0 || y == h - 1) {
        for (int x = first; x < last; x++)
            dst[y * w + x] = src[y * w + x];
        return;
    }
    const px *mid = src + y * w;
    Column l = column(mid + max(first - 1, 0), w), m = column(mid + first, w);
    for (int x = first; x < last; x++) {
        Column r = column(mid + min(x + 1, w - 1), w);
        int c = mid[x], out = c;
        if (x > 0 && x < w - 1) {
            int v[9] = {l.lo, m.lo, r.lo, l.mid, m.mid, r.mid, l.hi, m.hi, r.hi};
#pragma unroll
            for (int a = 1; a < 9; a++)
#pragma unroll
                for (int b = a; b > 0; b--) {
                    int lo = min(v[b - 1], v[b]);
                    v[b] = max(v[b - 1], v[b]);
                    v[b - 1] = lo;
                }
            // among the eleven, two more copies of c: the sixth is c kept between v[3] and v[5]
            out = min(max(c, v[3]), v[5]);
        }
        dst[y * w + x] = out;
        l = m;
        m = r;
    }
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    if (w > 0 && h > 0)
        rows<<<dim3((w + 127) / 128, (h + 7) / 8), dim3(16, 8), 0, stream>>>(w, h, src, dst);
    return cudaGetLastError();
}
