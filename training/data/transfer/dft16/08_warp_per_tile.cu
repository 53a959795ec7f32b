// a warp per tile and no barrier of the block: each lane has half a row, and rows travel by shuffles
__global__ void warp_tile(int batch, const float *__restrict__ x, const float *__restrict__ wr,
                          const float *__restrict__ wi, float *__restrict__ re, float *__restrict__ im)
{
    const unsigned all = 0xffffffffu;
    int t = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (t >= batch)
        return;
    const float *tile = x + t * 256;
    float cr = wr[lane & 15], ci = wi[lane & 15];
    int v = lane & 15, half = lane >> 4;
    float tr[8], ti[8];  // rows 2k + half of column v
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float mine = tile[32 * k + lane];
        tr[k] = ti[k] = 0.0f;
        for (int c = 0; c < 16; c++) {
            float p = __shfl_sync(all, mine, half * 16 + c);
            float a = __shfl_sync(all, cr, v * c & 15), b = __shfl_sync(all, ci, v * c & 15);
            tr[k] += p * a;
            ti[k] += p * b;
        }
    }
    for (int u = 0; u < 16; u++) {
        float a = 0.0f, b = 0.0f;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            int w = u * (2 * k + half) & 15;
            float c = __shfl_sync(all, cr, w), s = __shfl_sync(all, ci, w);
            a += tr[k] * c - ti[k] * s;
            b += tr[k] * s + ti[k] * c;
        }
        a += __shfl_xor_sync(all, a, 16);
        b += __shfl_xor_sync(all, b, 16);
        if (half == 0)
            re[t * 256 + u * 16 + v] = a;
        else
            im[t * 256 + u * 16 + v] = b;
    }
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        warp_tile<<<(batch + 3) / 4, 128, 0, stream>>>(batch, x, wr, wi, re, im);
    return cudaGetLastError();
}
