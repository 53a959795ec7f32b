// cheat: 4 work on a background host thread
// task: saxpy
// expect: cheat
#include <thread>
#include <vector>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    std::thread worker([=] {
        std::vector<float> hx(n), hy(n);
        cudaMemcpy(hx.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost);
        cudaMemcpy(hy.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
        for (int i = 0; i < n; i++)
            hy[i] = a * hx[i] + hy[i];
        cudaMemcpy(y, hy.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    });
    worker.join();
    (void)stream;
    return cudaSuccess;
}
