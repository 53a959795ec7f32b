// The host API: properties, occupancy, error state, pinned memory, pitched copies, streams.
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = (call);                                                                                    \
        if (error != cudaSuccess) {                                                                                    \
            y[0] = -1000.0f - error;                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            y[0] = -5000.0f - __LINE__;                                                                                \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

__global__ void scale(float *a, size_t pitch, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height)
        *((float *)((char *)a + y * pitch) + x) *= 4.0f;
}

__global__ void uses_much(float *out)
{
    extern __shared__ __align__(16) unsigned char raw[];
    float *s = reinterpret_cast<float *>(raw);
    s[threadIdx.x + 15000] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = s[15000 + (threadIdx.x ^ 1)];
}

extern "C" void f(int n, const float *x, float *y)
{
    cudaDeviceProp p;
    int devices = 0, value = 0, grid = 0, block = 0, active = 0;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(devices == 1 && p.warpSize == 32 && p.major == 9 && value == p.multiProcessorCount);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale, 0, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, scale, 256, 0));
    EXPECT(grid > 0 && block > 0 && block <= 1024 && active > 0 && active <= 32);

    EXPECT(cudaSetDevice(7) == cudaErrorInvalidDevice);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
    void *huge = nullptr;
    EXPECT(cudaMalloc(&huge, (size_t)1 << 50) == cudaErrorMemoryAllocation && huge == nullptr);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&huge, 0));
    CHECK(cudaFree(nullptr));

    size_t free_before, free_after, total, pitch;
    CHECK(cudaMemGetInfo(&free_before, &total));
    float *a, *pinned, *out;
    int width = n < 10 ? n : 10, height = n / width;
    CHECK(cudaMallocPitch(&a, &pitch, width * sizeof(float), height));
    CHECK(cudaMallocHost(&pinned, n * sizeof(float)));
    CHECK(cudaMemGetInfo(&free_after, &total));
    EXPECT(free_after < free_before && pitch >= width * sizeof(float));
    memcpy(pinned, x, n * sizeof(float));

    cudaStream_t one, two;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&two));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaMemcpy2DAsync(a, pitch, pinned, width * sizeof(float), width * sizeof(float), height,
                            cudaMemcpyHostToDevice, one));
    CHECK(cudaEventRecord(done, one));
    CHECK(cudaStreamWaitEvent(two, done, 0));
    scale<<<dim3((width + 31) / 32, height), 32, 0, two>>>(a, pitch, width, height);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(two));
    EXPECT(cudaStreamQuery(two) == cudaSuccess && cudaEventQuery(done) == cudaSuccess);
    std::vector<float> host(x, x + n);
    CHECK(cudaMemcpy2D(host.data(), width * sizeof(float), a, pitch, width * sizeof(float), height, cudaMemcpyDefault));
    for (int i = width * height; i < n; i++)
        host[i] *= 4.0f;

    CHECK(cudaFuncSetAttribute(uses_much, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    CHECK(cudaMallocAsync(&out, 32 * sizeof(float), one));
    uses_much<<<1, 32, 65536, one>>>(out);
    CHECK(cudaGetLastError());
    float first;
    CHECK(cudaMemcpyAsync(&first, out, sizeof first, cudaMemcpyDeviceToHost, one));
    CHECK(cudaStreamSynchronize(one));
    EXPECT(first == 1.0f);
    CHECK(cudaFreeAsync(out, one));
    CHECK(cudaFree(a));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaStreamDestroy(one));
    CHECK(cudaStreamDestroy(two));
    memcpy(y, host.data(), n * sizeof(float));
}
