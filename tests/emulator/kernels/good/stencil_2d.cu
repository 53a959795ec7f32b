// Four steps of a five-point stencil between two arrays, tiles with halo in shared memory, weights in constant memory.
#include <cuda_runtime.h>
#include <cmath>

#define TILE 8

__constant__ float weight[2];

__global__ void step(int m, const float *from, float *to)
{
    __shared__ float tile[TILE + 2][TILE + 2];
    int gx = blockIdx.x * TILE + threadIdx.x, gy = blockIdx.y * TILE + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [=] __device__(int y, int x) { return y >= 0 && y < m && x >= 0 && x < m ? from[y * m + x] : 0.0f; };
    tile[ty][tx] = at(gy, gx);
    if (threadIdx.x == 0)
        tile[ty][0] = at(gy, gx - 1);
    if (threadIdx.x == TILE - 1)
        tile[ty][TILE + 1] = at(gy, gx + 1);
    if (threadIdx.y == 0)
        tile[0][tx] = at(gy - 1, gx);
    if (threadIdx.y == TILE - 1)
        tile[TILE + 1][tx] = at(gy + 1, gx);
    __syncthreads();
    if (gx < m && gy < m)
        to[gy * m + gx] = weight[0] * tile[ty][tx] +
                          weight[1] * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx]);
}

extern "C" void f(int n, const float *x, float *y)
{
    int m = (int)sqrtf((float)n);
    size_t bytes = sizeof(float) * m * m;
    float w[2] = {0.5f, 0.125f}, *a, *b;
    cudaMemcpyToSymbol(weight, w, sizeof w);
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaMemcpy(a, x, bytes, cudaMemcpyHostToDevice);
    dim3 blockDim(TILE, TILE), gridDim((m + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    for (int i = 0; i < 4; i++) {
        step<<<gridDim, blockDim>>>(m, a, b);
        float *swap = a;
        a = b;
        b = swap;
    }
    for (int i = 0; i < n; i++)
        y[i] = 0.0f;
    cudaMemcpy(y, a, bytes, cudaMemcpyDeviceToHost);
    cudaFree(a);
    cudaFree(b);
}
