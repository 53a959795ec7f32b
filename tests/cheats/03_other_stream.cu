// cheat: 3 queues its work on a stream that nobody waits for
// task: saxpy
// expect: correct
// gpu: wrong correct
// note: the drop-in waits for its stream only; on a GPU it may copy the result before the work is done, which is then
// note: wrong as it would be for who links it; a caller that waits for the device gets, and times, all of the work
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
