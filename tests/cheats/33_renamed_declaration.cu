// cheat: 33 stops the profiler, by a function declared under another name
// task: saxpy
// expect: cheat
extern "C" void *find(void *, const char *) asm("dlsym");

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    void *stop = find(nullptr, "cuptiActivityDisable");
    if (stop != nullptr)
        ((int (*)(int))stop)(3);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
