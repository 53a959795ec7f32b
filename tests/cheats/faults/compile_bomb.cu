// fault: a compile-time bomb of templates
// task: saxpy
// expect: compile_error
template <int A, int B> struct S { static constexpr long v = S<A - 1, 2 * B>::v + S<A - 1, 2 * B + 1>::v; };
template <int B> struct S<0, B> { static constexpr long v = B; };
static const long big = S<26, 0>::v;

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (big == 3)
        return cudaErrorUnknown;
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
