// counts for each of the nine how many are smaller and how many are equal, no sorting
typedef unsigned short px;

__global__ void median(int w, int h, const px *src, px *dst)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h)
        return;
    int x = i % w, y = i / w;
    px out = src[i];
    if (x != 0 && y != 0 && x != w - 1 && y != h - 1) {
        px v[11];
        for (int k = 0; k < 9; k++)
            v[k] = src[i + (k / 3 - 1) * w + k % 3 - 1];
        v[9] = v[10] = src[i];
        for (int k = 0; k < 9; k++) {
            int less = 0, same = 0;
            for (int j = 0; j < 11; j++) {
                less += v[j] < v[k];
                same += v[j] == v[k];
            }
            if (less <= 5 && less + same > 5)
                out = v[k];
        }
    }
    dst[i] = out;
}

extern "C" int centre_median_device(int w, int h, const px *src, px *dst, cudaStream_t stream)
{
    int n = w * h;
    if (n > 0)
        median<<<(n + 255) / 256, 256, 0, stream>>>(w, h, src, dst);
    return cudaGetLastError();
}
