// tile with halo in shared memory; each thread's eleven values in shared memory, too, sorted by bubbles
typedef unsigned short px;
#define T 8

__global__ void median(int w, int h, const px *src, px *dst)
{
    __shared__ px tile[T + 2][T + 2], room[T * T][11];
    int x0 = blockIdx.x * T, y0 = blockIdx.y * T, t = threadIdx.y * T + threadIdx.x;
    for (int c = t; c < (T + 2) * (T + 2); c += T * T) {
        int x = min(max(x0 + c % (T + 2) - 1, 0), w - 1), y = min(max(y0 + c / (T + 2) - 1, 0), h - 1);
        tile[c / (T + 2)][c % (T + 2)] = src[y * w + x];
    }
    __syncthreads();
    int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    px *s = room[t];
    for (int k = 0; k < 9; k++)
        s[k] = tile[threadIdx.y + k / 3][threadIdx.x + k % 3];
    s[9] = s[10] = tile[threadIdx.y + 1][threadIdx.x + 1];
    px centre = s[10];
    for (int a = 0; a < 6; a++)
        for (int b = 10; b > a; b--)
            if (s[b] < s[b - 1]) {
                px v = s[b];
                s[b] = s[b - 1];
                s[b - 1] = v;
            }
    if (x < w && y < h)
        dst[y * w + x] = x == 0 || y == 0 || x == w - 1 || y == h - 1 ? centre : s[5];
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    if (w > 0 && h > 0)
        median<<<dim3((w + T - 1) / T, (h + T - 1) / T), dim3(T, T), 0, stream>>>(w, h, src, dst);
    return cudaGetLastError();
}
