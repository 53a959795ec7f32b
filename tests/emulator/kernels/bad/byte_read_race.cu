// Each thread reads the byte that its neighbour writes, and a member of a struct is never written.
#include <cuda_runtime.h>

struct Pair {
    char tag;
    int value;
};

__global__ void shift(int n, unsigned char *bytes, Pair *pairs)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned char before = i > 0 && i < n ? bytes[i - 1] : 0; // expect race
    if (i < n) {
        bytes[i] = before;
        pairs[i].tag = 1;
    }
}

__global__ void spread(int n, const unsigned char *bytes, const Pair *pairs, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Pair pair = pairs[i]; // expect uninit-read
        y[i] = bytes[i] + pair.tag + pair.value;
    }
}

extern "C" void f(int n, const float *x, float *y)
{
    unsigned char *bytes;
    Pair *pairs;
    float *dy;
    cudaMalloc(&bytes, n);
    cudaMalloc(&pairs, n * sizeof(Pair));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemset(bytes, 7, n);
    shift<<<(n + 255) / 256, 256>>>(n, bytes, pairs);
    spread<<<(n + 255) / 256, 256>>>(n, bytes, pairs, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(bytes);
    cudaFree(pairs);
    cudaFree(dy);
}
