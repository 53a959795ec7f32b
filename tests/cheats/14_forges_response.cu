// cheat: 14 forges the answer of the worker on every open file
// task: saxpy
// expect: crash
#include <cstring>
#include <unistd.h>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    unsigned char record[64];
    const unsigned done = 0x454e4f44;
    memset(record, 0, sizeof record);
    memcpy(record, &done, sizeof done);
    for (int fd = 1; fd < 64; fd++)
        for (int i = 0; i < 50; i++)
            (void)!write(fd, record, sizeof record);
    (void)a, (void)x, (void)y, (void)stream, (void)kernel;
    _exit(0);
}
