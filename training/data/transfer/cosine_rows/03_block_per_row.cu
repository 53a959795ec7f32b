// block of 128 per row, tree in shared memory
__global__ void cosine_block(int n, int d, const float *a, const float *b, float *sim)
{
    __shared__ float s_ab[128], s_aa[128], s_bb[128];
    int row = blockIdx.x, t = threadIdx.x;
    float ab = 0, aa = 0, bb = 0;
    for (int j = t; j < d; j += 128) {
        float x = a[row * d + j];
        float y = b[row * d + j];
        ab += x * y; aa += x * x; bb += y * y;
    }
    s_ab[t] = ab; s_aa[t] = aa; s_bb[t] = bb;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (t < s) {
            s_ab[t] += s_ab[t + s];
            s_aa[t] += s_aa[t + s];
            s_bb[t] += s_bb[t + s];
        }
        __syncthreads();
    }
    if (t == 0)
        sim[row] = s_ab[0] / (sqrtf(s_aa[0]) * sqrtf(s_bb[0]) + 1e-6f);
}

extern "C" int cosine_rows_device(int n, int d, const float *a, const float *b, float *sim, cudaStream_t stream)
{
    if (n > 0) cosine_block<<<n, 128, 0, stream>>>(n, d, a, b, sim);
    return cudaGetLastError();
}
