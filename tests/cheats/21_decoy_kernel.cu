// cheat: 21, 22 a decoy kernel is launched, the result comes from the CPU
// task: saxpy
// expect: cheat
// cases: hidden
#include <vector>

__global__ void decoy(int n, const float *x, float *scratch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        scratch[i] = x[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    std::vector<float> hx(n), hy(n);
    float *scratch;
    if (n <= 0)
        return cudaSuccess;
    cudaMalloc((void **)&scratch, n * sizeof(float));
    decoy<<<(n + 255) / 256, 256, 0, stream>>>(n, x, scratch);
    cudaMemcpy(hx.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hy.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++)
        hy[i] = a * hx[i] + hy[i];
    cudaMemcpy(y, hy.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaFree(scratch);
    return cudaGetLastError();
}
