// four neighbours a thread, one 16-byte store
__device__ __forceinline__ int run_of(const int *__restrict__ starts, int m, int i)
{
    int lo = 0, len = m;
    while (len > 0) {
        int half = len >> 1;
        bool right = __ldg(starts + lo + half) <= i;
        lo = right ? lo + half + 1 : lo;
        len = right ? len - half - 1 : half;
    }
    return lo;
}

__global__ void expand4(int m, int n, const int *__restrict__ starts, const int *__restrict__ value,
                        int *__restrict__ out)
{
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    int r = run_of(starts, m, i), v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        while (r < m && __ldg(starts + r) <= i + k) ++r;
        v[k] = r ? __ldg(value + r - 1) : 0;
    }
    if (i + 4 <= n)
        *reinterpret_cast<int4 *>(out + i) = make_int4(v[0], v[1], v[2], v[3]);
    else
        for (int k = 0; i + k < n; ++k) out[i + k] = v[k];
}

extern "C" int run_expand_device(int m, int n, const int *starts, const int *value, int *out, cudaStream_t stream)
{
    if (n > 0)
        expand4<<<(n + 1023) / 1024, 256, 0, stream>>>(m, n, starts, value, out);
    return cudaGetLastError();
}
