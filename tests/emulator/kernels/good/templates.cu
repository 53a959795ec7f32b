// Templates, functors, lambdas, kernel pointers, launch macros, NULL and 0 as pointers, cudaLaunchKernel.
#include <cuda_runtime.h>

#define LAUNCH(kernel, blocks, threads, ...) kernel<<<blocks, threads>>>(__VA_ARGS__)

namespace ns {
template <typename T, int N> struct Polynomial {
    T c[N];
    __host__ __device__ T operator()(T v) const
    {
        T sum = 0;
        for (int i = N - 1; i >= 0; i--)
            sum = sum * v + c[i];
        return sum;
    }
};

template <typename T, typename F> __global__ void map(int n, T *y, F function)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = function(y[i]);
}
} // namespace ns

template <bool Negate, int Stride = (4 > 2)> __global__ void maybe_negate(int n, float *y, const float *offset)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * Stride;
    if (i < n)
        y[i] = (Negate ? -y[i] : y[i]) + (offset ? *offset : 0.0f);
}

__global__ void increment(int n, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += 1.0f;
}

struct Copied { // its copy constructor reads the argument on the host
    float add;
    explicit Copied(float a) : add(a) {}
    __host__ __device__ Copied(const Copied &other) : add(other.add) {}
    __device__ float operator()(float v) const { return v + add; }
};

struct Runner {
    float factor;
    void run(int n, float *y) const { ns::map<<<2, 32>>>(n, y, ns::Polynomial<float, 2>{{0.0f, factor}}); }
};

extern "C" void f(int n, const float *x, float *y)
{
    float *dy;
    int blocks = (n + 63) / 64;
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dy, x, n * sizeof(float), cudaMemcpyHostToDevice);
    ns::map<<<2, 64>>>(n, dy, ns::Polynomial<float, 3>{{1.0f, 2.0f, 0.5f}}); // 1 + 2v + v²/2
    float shift = 3.0f;
    ns::map<float><<<2, 64>>>(n, dy, [=] __device__(float v) { return v + shift; });
    maybe_negate<true><<<blocks, 64>>>(n, dy, NULL);
    maybe_negate<false, 1><<<blocks, 64>>>(n, dy, 0);
    maybe_negate<(2 > 1)><<<blocks, 64>>>(n, dy, nullptr);
    LAUNCH(increment, blocks, 64, n, dy);
    void (*kernel)(int, float *) = increment;
    kernel<<<blocks, 64>>>(n, dy);
    void (*table[1])(int, float *) = {increment};
    table[0]<<<blocks, 64>>>(n, dy);
    (*kernel)<<<blocks, dim3(64, 1, 1), 0, 0>>>(n, dy);
    Runner{2.0f}.run(n, dy);
    Copied copied(0.25f);
    ns::map<<<2, 32>>>(n, dy, copied);
    void *arguments[] = {&n, &dy};
    cudaLaunchKernel(increment, dim3(blocks), dim3(64), arguments, 0, 0);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dy);
}
