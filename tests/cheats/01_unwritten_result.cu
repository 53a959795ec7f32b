// cheat: 1 result left unwritten, in the hope of the right bytes
// task: find
// expect: memory_error
__global__ void kernel(int n, int wanted, const int *x, int *result)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] == wanted)
        atomicMin((unsigned *)result, (unsigned)i); // relies on -1 being there already
}

extern "C" int find_device(int n, int wanted, const int *x, int *result, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, wanted, x, result);
    return cudaGetLastError();
}
