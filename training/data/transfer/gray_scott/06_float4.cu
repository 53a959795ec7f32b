// four cells of a row a thread where rows are a multiple of four
__device__ __forceinline__ float4 ld(const float *p) { return *reinterpret_cast<const float4 *>(p); }

__device__ __forceinline__ float4 lap4(const float *__restrict__ f, int up, int here, int down, float left, float right)
{
    const float4 a = ld(f + up), b = ld(f + down), c = ld(f + here);
    return make_float4(a.x + b.x + left + c.y - 4.0f * c.x, a.y + b.y + c.x + c.z - 4.0f * c.y,
                       a.z + b.z + c.y + c.w - 4.0f * c.z, a.w + b.w + c.z + right - 4.0f * c.w);
}

__global__ void __launch_bounds__(256) quads(int rows, int cols, const float *__restrict__ u, const float *__restrict__ v,
                                             float *__restrict__ un, float *__restrict__ vn, float feed, float kill)
{
    const int j = 4 * (blockIdx.x * 64 + threadIdx.x), i = blockIdx.y * 4 + threadIdx.y;
    if (j >= cols || i >= rows) return;
    const int here = i * cols + j, up = (i ? i - 1 : rows - 1) * cols + j, down = (i + 1 < rows ? i + 1 : 0) * cols + j;
    const int left = i * cols + (j ? j - 1 : cols - 1), right = i * cols + (j + 4 < cols ? j + 4 : 0);
    const float4 a = ld(u + here), b = ld(v + here);
    const float4 la = lap4(u, up, here, down, u[left], u[right]), lb = lap4(v, up, here, down, v[left], v[right]);
    const float loss = feed + kill;
    float4 p, q;
#define CELL(c)                                        \
    {                                                  \
        const float r = a.c * b.c * b.c;               \
        p.c = a.c + 0.16f * la.c - r + feed * (1.0f - a.c); \
        q.c = b.c + 0.08f * lb.c + r - loss * b.c;     \
    }
    CELL(x) CELL(y) CELL(z) CELL(w)
    *reinterpret_cast<float4 *>(un + here) = p;
    *reinterpret_cast<float4 *>(vn + here) = q;
}

__global__ void cells(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill)
{
    const int j = blockIdx.x * 64 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (j >= cols || i >= rows) return;
    const int k = i * cols + j, n = (i ? i - 1 : rows - 1) * cols + j, s = (i + 1 < rows ? i + 1 : 0) * cols + j;
    const int w = i * cols + (j ? j - 1 : cols - 1), e = i * cols + (j + 1 < cols ? j + 1 : 0);
    const float a = u[k], b = v[k], r = a * b * b;
    un[k] = a + 0.16f * (u[n] + u[s] + u[w] + u[e] - 4.0f * a) - r + feed * (1.0f - a);
    vn[k] = b + 0.08f * (v[n] + v[s] + v[w] + v[e] - 4.0f * b) + r - (feed + kill) * b;
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    if (rows <= 0 || cols <= 0) return cudaSuccess;
    const dim3 block(64, 4);
    if (cols % 4 == 0)
        quads<<<dim3((cols + 255) / 256, (rows + 3) / 4), block, 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    else
        cells<<<dim3((cols + 63) / 64, (rows + 3) / 4), block, 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    return cudaGetLastError();
}
