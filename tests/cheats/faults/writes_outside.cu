// fault: writes outside its folder
// task: saxpy
// expect: correct
#include <fstream>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    const char *places[] = {"/usr/cudaperf-stray", "/etc/cudaperf-stray", "/root/cudaperf-stray", "/tmp/cudaperf-stray",
                            "/dev" "/shm/cudaperf-stray", "../cudaperf-stray", "/var/tmp/cudaperf-stray"};
    for (const char *place : places)
        std::ofstream(place) << "stray";
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
