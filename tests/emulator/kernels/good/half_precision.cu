// half, half2 and bfloat16: conversions, arithmetic, comparison, atomics, shuffles.
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void halves(int n, const __half *x, float *y, __half *total)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half v = i < n ? x[i] : __float2half(0.0f);
    __half2 pair = __halves2half2(v, __hmul(v, __float2half(2.0f)));
    pair = __hadd2(pair, __float2half2_rn(1.0f));           // (v + 1, 2v + 1)
    __half sum = __hfma(__low2half(pair), __float2half(0.5f), __high2half(pair));
    __half first = __shfl_sync(0xffffffffu, sum, 0);
    float extra = __hgt(first, first) || hsqrt(__float2half(4.0f)) != __half(2.0f) ? 100.0f : 0.0f;
    extra += fabsf(__bfloat162float(__float2bfloat16(1.00390625f)) - 1.0f); // a tie: to even
    if (i < n) {
        y[i] = __half2float(sum) + extra;
        atomicAdd(total, __float2half(i < 100 ? 1.0f : 0.0f));
    }
}

__global__ void narrow(int n, const float *x, __half *h)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        h[i] = __float2half(x[i]);
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    __half *h, *total, host;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMalloc(&h, n * sizeof(__half));
    cudaMalloc(&total, sizeof(__half));
    cudaMemset(total, 0, sizeof(__half));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    int blocks = (n + 63) / 64;
    narrow<<<blocks, 64>>>(n, dx, h);
    halves<<<blocks, 64>>>(n, h, dy, total);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(&host, total, sizeof host, cudaMemcpyDeviceToHost);
    if (__half2float(host) != (n < 100 ? n : 100))
        y[0] = -1000.0f;
    cudaFree(dx);
    cudaFree(dy);
    cudaFree(h);
    cudaFree(total);
}
