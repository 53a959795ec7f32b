// Every thread reads and writes its own byte, its own 16 bits, and its own small struct: neighbours share words.
#include <cuda_runtime.h>

struct Item {
    unsigned char low;
    signed char high;
    unsigned short both;
};

__global__ void negate(int n, signed char *bytes, short *halves, Item *items)
{
    __shared__ unsigned char seen[192];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (bytes[i] != 0)
        bytes[i] = -bytes[i];
    halves[i] += 1;
    items[i].both = items[i].low + items[i].high;
    seen[threadIdx.x] = items[i].low;
    seen[threadIdx.x] += items[i].both;
    items[i].low = seen[threadIdx.x];
}

__global__ void spread(int n, const signed char *bytes, const short *halves, const Item *items, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = bytes[i] + 256.0f * halves[i] + items[i].low + items[i].both;
}

extern "C" void f(int n, const float *x, float *y)
{
    signed char *bytes = new signed char[n], *device_bytes;
    short *halves = new short[n], *device_halves;
    Item *items = new Item[n], *device_items;
    for (int i = 0; i < n; i++) {
        bytes[i] = static_cast<signed char>(i % 100);
        halves[i] = static_cast<short>(i);
        items[i] = {static_cast<unsigned char>(i % 50), 3, 0};
    }
    float *device_y;
    cudaMalloc(&device_bytes, n);
    cudaMalloc(&device_halves, n * sizeof(short));
    cudaMalloc(&device_items, n * sizeof(Item));
    cudaMalloc(&device_y, n * sizeof(float));
    cudaMemcpy(device_bytes, bytes, n, cudaMemcpyHostToDevice);
    cudaMemcpy(device_halves, halves, n * sizeof(short), cudaMemcpyHostToDevice);
    cudaMemcpy(device_items, items, n * sizeof(Item), cudaMemcpyHostToDevice);
    negate<<<(n + 190) / 191, 191>>>(n, device_bytes, device_halves, device_items); // words cross blocks too
    spread<<<(n + 255) / 256, 256>>>(n, device_bytes, device_halves, device_items, device_y);
    cudaMemcpy(y, device_y, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(device_bytes);
    cudaFree(device_halves);
    cudaFree(device_items);
    cudaFree(device_y);
    delete[] bytes;
    delete[] halves;
    delete[] items;
}
