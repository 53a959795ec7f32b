// The host API: memory, streams, events, device queries, launches by pointer.
#pragma once
#include "launch.h"

#define CUDART_VERSION 13000
#define CUDART_CB

extern "C" {
cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind);
cudaError_t cudaMemset(void *to, int value, size_t size);
cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *argument, unsigned flags);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop);
}

template <class T> EMU_INLINE cudaError_t cudaMalloc(T **pointer, size_t size) {
  return emu_malloc(reinterpret_cast<void **>(pointer), size, EMU_DEVICE);
}
template <class T> EMU_INLINE cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t) {
  return emu_malloc(reinterpret_cast<void **>(pointer), size, EMU_DEVICE);
}
template <class T> EMU_INLINE cudaError_t cudaMallocManaged(T **pointer, size_t size, unsigned = cudaMemAttachGlobal) {
  return emu_malloc(reinterpret_cast<void **>(pointer), size, EMU_MANAGED);
}
template <class T> EMU_INLINE cudaError_t cudaMallocHost(T **pointer, size_t size, unsigned = cudaHostAllocDefault) {
  return emu_malloc(reinterpret_cast<void **>(pointer), size, EMU_PINNED);
}
template <class T> EMU_INLINE cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned) {
  return emu_malloc(reinterpret_cast<void **>(pointer), size, EMU_PINNED);
}
template <class T> EMU_INLINE cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return emu_malloc(reinterpret_cast<void **>(pointer), *pitch * height, EMU_DEVICE);
}

EMU_INLINE cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                                       cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, size, kind);
}
EMU_INLINE cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                         size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
EMU_INLINE cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t = nullptr) {
  return cudaMemset(to, value, size);
}
EMU_INLINE cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                         cudaStream_t = nullptr) {
  return cudaMemset2D(to, pitch, value, width, height);
}
EMU_INLINE cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
EMU_INLINE cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
// The forms of CUDA 13.
EMU_INLINE cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
EMU_INLINE cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned, cudaStream_t = nullptr) {
  return cudaSuccess;
}

// A symbol is the variable itself: device code and host code share one address space here.
template <class T>
EMU_INLINE cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t size, size_t offset = 0,
                                          cudaMemcpyKind = cudaMemcpyHostToDevice) {
  return emu_symbol_copy((void *)&symbol, from, size, sizeof(T), offset, 1);
}
template <class T>
EMU_INLINE cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t size, size_t offset = 0,
                                            cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  return emu_symbol_copy(to, (const void *)&symbol, size, sizeof(T), offset, 0);
}
template <class T>
EMU_INLINE cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t size, size_t offset = 0,
                                               cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
  return emu_symbol_copy((void *)&symbol, from, size, sizeof(T), offset, 1);
}
template <class T>
EMU_INLINE cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t size, size_t offset = 0,
                                                 cudaMemcpyKind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
  return emu_symbol_copy(to, (const void *)&symbol, size, sizeof(T), offset, 0);
}
template <class T> EMU_INLINE cudaError_t cudaGetSymbolAddress(void **pointer, const T &symbol) {
  *pointer = (void *)&symbol;
  return cudaSuccess;
}
template <class T> EMU_INLINE cudaError_t cudaGetSymbolSize(size_t *size, const T &) {
  *size = sizeof(T);
  return cudaSuccess;
}

EMU_INLINE cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
EMU_INLINE cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}

EMU_INLINE cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
EMU_INLINE cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
EMU_INLINE cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
EMU_INLINE cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
EMU_INLINE cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

template <class F> EMU_INLINE cudaError_t cudaFuncSetAttribute(F *function, cudaFuncAttribute attribute, int value) {
  return emu_set_function_attribute((const void *)function, attribute, value);
}
template <class F> EMU_INLINE cudaError_t cudaFuncSetCacheConfig(F *, cudaFuncCache) { return cudaSuccess; }
template <class F> EMU_INLINE cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F *) {
  *attributes = cudaFuncAttributes{0, 0, 0, 1024, 32, 90, 90, 0, 48 << 10, -1};
  return cudaSuccess;
}
// Registers and static shared memory are unknown here: the answers assume that threads alone are the limit.
template <class F>
EMU_INLINE cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F, size_t = 0, int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  *grid = 132 * 2;
  return cudaSuccess;
}
template <class F>
EMU_INLINE cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int threads, size_t shared = 0) {
  if (threads <= 0 || threads > 1024) return emu_fail(cudaErrorInvalidValue);
  int by_threads = 2048 / threads < 32 ? 2048 / threads : 32;
  int by_shared = shared ? static_cast<int>((228u << 10) / (shared + 1024)) : by_threads;
  *blocks = by_threads < by_shared ? by_threads : by_shared;
  return cudaSuccess;
}

template <class... P>
EMU_UNCHECKED inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments,
                                                  size_t shared = 0, cudaStream_t stream = nullptr,
                                                  int line = __builtin_LINE()) {
  cudaError_t pending = cudaPeekAtLastError();
  emu::detail::launch_packed(kernel, grid, block, arguments, shared, stream, line, std::index_sequence_for<P...>{});
  cudaError_t now = cudaPeekAtLastError();
  return now == pending ? cudaSuccess : now;
}
EMU_INLINE cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t = 0, cudaStream_t = nullptr,
                                        int line = __builtin_LINE()) {
  emu_unsupported("cudaLaunchKernel with an untyped kernel pointer", line);
  return emu_fail(cudaErrorNotSupported);
}
