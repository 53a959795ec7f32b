// ceilings
//
// Measures what this device can do at most, and prints it as one JSON object: bytes per second of copying, reading and
// writing device memory and of copying within the L2, float and double operations per second (a fused multiply-add
// counts two), and host seconds of launching an empty kernel and waiting for it, right away and after the L2 was
// emptied. Rates are the best of several runs, since they are bounds; the launch after emptying is a median.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <cuda_runtime.h>

namespace {

constexpr int RUNS = 7, BLOCK = 256, LAUNCHES = 64, L2_PASSES = 32, FMA_STEPS = 4096, FMA_CHAINS = 8;
constexpr size_t MOST_BYTES = size_t(1) << 30;

void check(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "ceilings: %s: %s\n", what, cudaGetErrorString(status));
  exit(72);
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

__global__ void nothing() {}

__global__ void copy(const float4 *from, float4 *to, size_t count, int passes) {
  for (int p = 0; p < passes; p++)
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
      to[i] = from[i];
}

__global__ void read(const float4 *from, float4 *to, size_t count) {
  float4 sum = {0, 0, 0, 0};
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    float4 v = from[i];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  if (sum.x == 1.2345f) to[0] = sum; // never, but the compiler cannot know
}

__global__ void write(float4 *to, size_t count, float value) {
  float4 v = {value, value + 1, value + 2, value + 3};
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    to[i] = v;
}

__global__ void start_values(float4 *at, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    float v = static_cast<float>(i % 8191) * 0.37f; // zeros would run faster than data
    at[i] = {v, v + 0.1f, v + 0.2f, v + 0.3f};
  }
}

template <class T> __global__ void multiply_add(T *out, T a, T b) {
  T chain[FMA_CHAINS];
  for (int c = 0; c < FMA_CHAINS; c++) chain[c] = a + static_cast<T>(threadIdx.x + c);
  for (int s = 0; s < FMA_STEPS; s++)
#pragma unroll
    for (int c = 0; c < FMA_CHAINS; c++) chain[c] = chain[c] * a + b;
  T sum = 0;
  for (int c = 0; c < FMA_CHAINS; c++) sum += chain[c];
  if (sum == static_cast<T>(1.2345)) out[0] = sum;
}

// Shortest seconds on the device of what `launch` launches.
template <class Launch> double shortest(Launch launch) {
  cudaEvent_t before, after;
  check(cudaEventCreate(&before), "events");
  check(cudaEventCreate(&after), "events");
  double best = 1e30;
  for (int run = 0; run < RUNS; run++) {
    check(cudaEventRecord(before), "events");
    launch();
    check(cudaEventRecord(after), "events");
    check(cudaEventSynchronize(after), "running");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, before, after), "events");
    if (run > 0) best = std::min(best, 1e-3 * static_cast<double>(milliseconds));
  }
  return best;
}

double launch_seconds(char *flush, size_t flush_bytes, bool median) {
  std::vector<double> seconds;
  for (int i = 0; i < LAUNCHES; i++) {
    if (flush_bytes) check(cudaMemset(flush, i, flush_bytes), "flushing");
    check(cudaDeviceSynchronize(), "flushing");
    double start = now();
    nothing<<<1, 32>>>();
    check(cudaDeviceSynchronize(), "an empty kernel");
    seconds.push_back(now() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[median ? seconds.size() / 2 : 0];
}

} // namespace

int main() {
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "asking the device");
  size_t l2 = static_cast<size_t>(device.l2CacheSize);
  size_t bytes = std::min(MOST_BYTES, device.totalGlobalMem / 8) / BLOCK * BLOCK, count = bytes / sizeof(float4);
  float4 *from, *to;
  check(cudaMalloc(&from, bytes), "memory");
  check(cudaMalloc(&to, bytes), "memory");
  int sms = device.multiProcessorCount, grid = sms * (device.maxThreadsPerMultiProcessor / BLOCK);
  start_values<<<grid, BLOCK>>>(from, count);
  start_values<<<grid, BLOCK>>>(to, count);
  double b = static_cast<double>(bytes);
  double kernel = shortest([&] { copy<<<grid, BLOCK>>>(from, to, count, 1); });
  double engine = shortest([&] { cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice); });
  double reading = shortest([&] { read<<<grid, BLOCK>>>(from, to, count); });
  double writing = shortest([&] { write<<<grid, BLOCK>>>(to, count, 0.5f); });
  size_t within = std::max<size_t>(l2 / 8, 1 << 18) / sizeof(float4); // twice this lies in the L2 with room to spare
  double cached = shortest([&] { copy<<<grid, BLOCK>>>(from, to, within, L2_PASSES); });
  double cached_bytes = 2.0 * L2_PASSES * static_cast<double>(within * sizeof(float4));
  double operations = 2.0 * FMA_STEPS * FMA_CHAINS * static_cast<double>(grid) * BLOCK;
  double single = shortest([&] { multiply_add<float><<<grid, BLOCK>>>(reinterpret_cast<float *>(to), 0.999f, 0.5f); });
  double twofold = shortest([&] { multiply_add<double><<<grid, BLOCK>>>(reinterpret_cast<double *>(to), 0.999, 0.5); });
  check(cudaDeviceSynchronize(), "running");
  size_t flush_bytes = std::min(bytes, 2 * l2);
  double warm = launch_seconds(nullptr, 0, false);
  double cold = launch_seconds(reinterpret_cast<char *>(from), flush_bytes, true);
  printf("{\"copy\": %.6g, \"read\": %.6g, \"write\": %.6g, \"l2_copy\": %.6g, \"f32\": %.6g, \"f64\": %.6g, "
         "\"launch_seconds\": %.6g, \"null_call_seconds\": %.6g, \"bytes\": %zu}\n",
         2 * b / std::min(kernel, engine), b / reading, b / writing, cached_bytes / cached, operations / single,
         operations / twofold, warm, cold, bytes);
  return 0;
}
