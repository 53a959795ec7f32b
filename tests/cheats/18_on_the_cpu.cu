// cheat: 18 falls back to the CPU
// task: saxpy
// expect: cheat
#include <vector>

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    std::vector<float> hx(n), hy(n);
    (void)stream;
    cudaMemcpy(hx.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hy.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++)
        hy[i] = a * hx[i] + hy[i];
    cudaMemcpy(y, hy.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    return cudaGetLastError();
}
