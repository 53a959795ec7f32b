// the 4th and 5th of the eight neighbours bound the answer: it is the centre clamped between order statistics,
// found with a sorting network in registers
typedef unsigned short px;

#define ORDER(i, j) { int lo = min(v[i], v[j]); v[j] = max(v[i], v[j]); v[i] = lo; }

__global__ void __launch_bounds__(256) median(int w, int h, const px *__restrict__ src, px *__restrict__ dst)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= w || y >= h) return;
    int c = src[y * w + x];
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
        const px *a = src + (y - 1) * w + x, *b = a + w, *d = b + w;
        int v[8] = {a[-1], a[0], a[1], b[-1], b[1], d[-1], d[0], d[1]};
        // Batcher's network of eight
        ORDER(0, 1) ORDER(2, 3) ORDER(4, 5) ORDER(6, 7)
        ORDER(0, 2) ORDER(1, 3) ORDER(4, 6) ORDER(5, 7)
        ORDER(1, 2) ORDER(5, 6)
        ORDER(0, 4) ORDER(1, 5) ORDER(2, 6) ORDER(3, 7)
        ORDER(2, 4) ORDER(3, 5)
        ORDER(1, 2) ORDER(3, 4) ORDER(5, 6)
        c = min(max(c, v[2]), v[5]);  // the sixth of eleven, three of which are the centre
    }
    dst[y * w + x] = c;
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    if (w > 0 && h > 0)
        median<<<dim3((w + 31) / 32, (h + 7) / 8), dim3(32, 8), 0, stream>>>(w, h, src, dst);
    return cudaGetLastError();
}
