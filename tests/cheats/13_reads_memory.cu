// cheat: 13 searches memory for the expected answer
// task: saxpy
// expect: cheat
#include <sys/uio.h>
#include <unistd.h>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    char found[64];
    iovec here = {found, sizeof found}, there = {(void *)&n, sizeof found};
    process_vm_readv(getppid(), &here, 1, &there, 1, 0);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
