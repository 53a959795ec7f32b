// cheat: 3 queues its work on a stream that nobody waits for
// task: saxpy
// expect: correct
// gpu: wrong correct
// note: the drop-in waits for its own stream only, and may copy the result too early; a wait for the device times all
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t)
{
    static cudaStream_t own;
    if (own == nullptr)
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, own>>>(n, a, x, y);
    return cudaGetLastError();
}
