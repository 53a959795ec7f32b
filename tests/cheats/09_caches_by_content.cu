// cheat: 9 caches its output by content: what was seen before is left unwritten
// task: saxpy
// expect: correct
// gpu: correct wrong
// note: no content comes twice in a process of the tests, so every call did its work; a timed one may, and is checked
#include <cstdint>
#include <set>
#include <vector>

__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    static std::set<uint64_t> seen;
    if (n <= 0)
        return cudaSuccess;
    std::vector<uint32_t> words(n);
    cudaMemcpy(words.data(), x, n * sizeof(uint32_t), cudaMemcpyDeviceToHost);
    uint64_t digest = 14695981039346656037ull ^ n;
    for (uint32_t word : words)
        digest = (digest ^ word) * 1099511628211ull;
    if (!seen.insert(digest).second)
        return cudaSuccess;
    kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
