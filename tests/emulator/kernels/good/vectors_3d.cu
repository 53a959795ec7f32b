// float4 loads and stores, three-dimensional grids and blocks, structs by value.
#include <cuda_runtime.h>

struct Shape {
    int n;
    float scale;
    int3 unused;
};

__global__ void scale4(Shape s, const float4 *x, float4 *y)
{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
    if (i < s.n / 4) {
        float4 v = x[i];
        y[i] = make_float4(v.x * s.scale, v.y * s.scale, v.z * s.scale, v.w * s.scale);
    }
}

__global__ void rest(Shape s, const float *x, float *y)
{
    for (int i = s.n / 4 * 4 + threadIdx.x; i < s.n; i += blockDim.x) {
        float2 two = make_float2(x[i], s.scale);
        uchar4 bytes = make_uchar4(1, 2, 3, 4);
        y[i] = two.x * two.y + (bytes.w - 4);
    }
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    Shape s = {n, -3.0f, make_int3(0, 0, 0)};
    scale4<<<dim3(2, 3, (unsigned)(n / 4 / (2 * 3 * 24) + 1)), dim3(4, 3, 2)>>>(
        s, (const float4 *)dx, reinterpret_cast<float4 *>(dy));
    rest<<<1, 4>>>(s, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
