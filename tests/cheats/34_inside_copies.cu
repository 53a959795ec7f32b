// cheat: 34 hides its work between copies, in the allocation of its scratch memory
// task: saxpy
// expect: cheat
#include <cstdlib>

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n <= 0)
        return cudaSuccess;
    size_t bytes = n * sizeof(float);
    float *hx = (float *)malloc(bytes), *hy = (float *)malloc(bytes);
    cudaMemcpyAsync(hx, x, bytes, cudaMemcpyDeviceToHost, stream);
    cudaMemcpyAsync(hy, y, bytes, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    for (int i = 0; i < n; i++)
        hy[i] = a * hx[i] + hy[i];
    cudaMemcpyAsync(y, hy, bytes, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    free(hx);
    free(hy);
    return cudaGetLastError();
}
