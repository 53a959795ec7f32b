// 16 threads a tile, 8 tiles a block; each thread keeps a row, then a column, in registers
#define TILES 8

__global__ void __launch_bounds__(16 * TILES) registers(int batch, const float *__restrict__ x,
    const float *__restrict__ wr, const float *__restrict__ wi, float *__restrict__ re, float *__restrict__ im)
{
    __shared__ float sr[TILES][16][17], si[TILES][16][17], cr[16], ci[16];
    const int lane = threadIdx.x, slot = threadIdx.y, t = blockIdx.x * TILES + slot;
    if (slot == 0) {
        cr[lane] = wr[lane];
        ci[lane] = wi[lane];
    }
    __syncthreads();
    if (t < batch) {
        float row[16];
#pragma unroll
        for (int c = 0; c < 16; c += 4) {
            const float4 q = *reinterpret_cast<const float4 *>(x + t * 256 + lane * 16 + c);
            row[c] = q.x, row[c + 1] = q.y, row[c + 2] = q.z, row[c + 3] = q.w;
        }
#pragma unroll
        for (int v = 0; v < 16; ++v) {
            float a = 0.f, b = 0.f;
#pragma unroll
            for (int c = 0; c < 16; ++c) {
                a = fmaf(row[c], cr[v * c % 16], a);
                b = fmaf(row[c], ci[v * c % 16], b);
            }
            sr[slot][lane][v] = a;
            si[slot][lane][v] = b;
        }
    }
    __syncthreads();
    if (t < batch) {
        float p[16], q[16];
#pragma unroll
        for (int r = 0; r < 16; ++r) {
            p[r] = sr[slot][r][lane];
            q[r] = si[slot][r][lane];
        }
#pragma unroll
        for (int u = 0; u < 16; ++u) {
            float a = 0.f, b = 0.f;
#pragma unroll
            for (int r = 0; r < 16; ++r) {
                const float c = cr[u * r % 16], s = ci[u * r % 16];
                a += p[r] * c - q[r] * s;
                b += p[r] * s + q[r] * c;
            }
            re[t * 256 + u * 16 + lane] = a;
            im[t * 256 + u * 16 + lane] = b;
        }
    }
}

extern "C" int dft16_device(int batch, const float *x, const float *wr, const float *wi, float *re, float *im,
                            cudaStream_t stream)
{
    if (batch > 0)
        registers<<<(batch + TILES - 1) / TILES, dim3(16, TILES), 0, stream>>>(batch, x, wr, wi, re, im);
    return cudaGetLastError();
}
