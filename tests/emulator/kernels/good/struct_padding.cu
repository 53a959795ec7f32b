// Structs with padding are written member by member and copied whole, in global and in shared memory.
#include <cuda_runtime.h>

struct Item {
    char tag;
    double value;
    short rank;
};
struct Small {
    short rank;
    char tag;
    int value;
};

__global__ void fill(int n, const float *x, Item *items, Small *smalls)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    items[i].tag = 1;
    items[i].value = x[i];
    items[i].rank = 2;
    smalls[i].rank = 3;
    smalls[i].tag = 4;
    smalls[i].value = 5;
}

__global__ void reversed(int n, const Item *items, const Small *smalls, Item *out, Small *small_out)
{
    __shared__ Item tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        tile[threadIdx.x].tag = items[n - 1 - i].tag;
        tile[threadIdx.x].value = items[n - 1 - i].value;
        tile[threadIdx.x].rank = items[n - 1 - i].rank;
        Item mine = tile[threadIdx.x];
        out[i] = mine;
        small_out[i] = smalls[i];
    }
}

__global__ void spread(int n, const Item *items, const Small *smalls, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Item item = items[i];
        Small small = smalls[i];
        y[i] = float(item.value) + item.tag + item.rank + small.rank + small.tag + small.value;
    }
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    Item *items, *out;
    Small *smalls, *small_out;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMalloc(&items, n * sizeof(Item));
    cudaMalloc(&out, n * sizeof(Item));
    cudaMalloc(&smalls, n * sizeof(Small));
    cudaMalloc(&small_out, n * sizeof(Small));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    int blocks = (n + 127) / 128;
    fill<<<blocks, 128>>>(n, dx, items, smalls);
    reversed<<<blocks, 128>>>(n, items, smalls, out, small_out);
    spread<<<blocks, 128>>>(n, out, small_out, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
    cudaFree(items);
    cudaFree(out);
    cudaFree(smalls);
    cudaFree(small_out);
}
