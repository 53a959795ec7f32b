// The rest of the host API: errors, the device and its properties, streams and events. Work is done when it is asked
// for, so streams are always idle and events only keep the time.
#include <cstring>
#include <ctime>
#include <set>

#include "../include/emu/runtime_api.h"
#include "config.h"
#include "errors.h"
#include "memory.h"
#include "report.h"

namespace emu {

namespace {

cudaError_t last = cudaSuccess, lasting = cudaSuccess;

struct Event {
  bool timed, recorded;
  double seconds;
};
std::set<Event *> events;
std::set<void *> streams;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Event *event_of(cudaEvent_t handle) {
  auto it = events.find(reinterpret_cast<Event *>(handle));
  return it == events.end() ? nullptr : *it;
}

bool known(cudaStream_t stream) {
  return !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread || streams.count(stream);
}

cudaError_t make_stream(cudaStream_t *stream) {
  if (lasting) return lasting;
  *stream = reinterpret_cast<cudaStream_t>(new char);
  streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t with_stream(cudaStream_t stream) {
  if (lasting) return lasting;
  return known(stream) ? cudaSuccess : fail(cudaErrorInvalidResourceHandle);
}

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText ERRORS[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const ErrorText *text_of(cudaError_t error) {
  for (const ErrorText &e : ERRORS)
    if (e.error == error) return &e;
  return nullptr;
}

// Figures of an H100-class device of compute capability 9.0.
int attribute(cudaDeviceAttr which) {
  switch (which) {
  case cudaDevAttrMaxThreadsPerBlock:
  case cudaDevAttrMaxBlockDimX:
  case cudaDevAttrMaxBlockDimY: return 1024;
  case cudaDevAttrMaxBlockDimZ: return 64;
  case cudaDevAttrMaxGridDimX: return 2147483647;
  case cudaDevAttrMaxGridDimY:
  case cudaDevAttrMaxGridDimZ: return 65535;
  case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(SHARED_DEFAULT);
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(SHARED_MAX);
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 228 << 10;
  case cudaDevAttrTotalConstantMemory: return 64 << 10;
  case cudaDevAttrWarpSize: return 32;
  case cudaDevAttrMaxRegistersPerBlock:
  case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
  case cudaDevAttrClockRate: return 1980000;
  case cudaDevAttrMultiProcessorCount: return 132;
  case cudaDevAttrConcurrentKernels:
  case cudaDevAttrManagedMemory:
  case cudaDevAttrConcurrentManagedAccess:
  case cudaDevAttrMemoryPoolsSupported: return 1;
  case cudaDevAttrCooperativeLaunch: return 0;
  case cudaDevAttrL2CacheSize: return 50 << 20;
  case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
  case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
  case cudaDevAttrComputeCapabilityMajor: return 9;
  case cudaDevAttrComputeCapabilityMinor: return 0;
  }
  return 0;
}

} // namespace

cudaError_t fail(cudaError_t error) {
  if (error) last = error;
  return error;
}

void fail_for_good(cudaError_t error) {
  if (!lasting) lasting = error;
}

cudaError_t lasting_error() { return lasting; }

} // namespace emu

using namespace emu;

EMU_API cudaError_t emu_fail(cudaError_t error) { return fail(error); }

EMU_API cudaError_t cudaGetLastError() {
  if (lasting) return lasting;
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
EMU_API cudaError_t cudaPeekAtLastError() { return lasting ? lasting : last; }
EMU_API const char *cudaGetErrorString(cudaError_t error) {
  const ErrorText *e = text_of(error);
  return e ? e->text : "unrecognized error code";
}
EMU_API const char *cudaGetErrorName(cudaError_t error) {
  const ErrorText *e = text_of(error);
  return e ? e->name : "unrecognized error code";
}

EMU_API cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
EMU_API cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return lasting;
}
EMU_API cudaError_t cudaSetDevice(int device) { return device ? fail(cudaErrorInvalidDevice) : lasting; }
EMU_API cudaError_t cudaDeviceSynchronize() { return lasting; }
EMU_API cudaError_t cudaDeviceReset() { return lasting; }
EMU_API cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
EMU_API cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
EMU_API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device) {
  if (device) return fail(cudaErrorInvalidDevice);
  *value = attribute(which);
  return cudaSuccess;
}
EMU_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device) {
  if (device) return fail(cudaErrorInvalidDevice);
  *p = cudaDeviceProp{};
  strcpy(p->name, "CudaPerf CPU emulator (compute capability 9.0)");
  p->totalGlobalMem = ARENA_BYTES;
  p->sharedMemPerBlock = SHARED_DEFAULT;
  p->sharedMemPerBlockOptin = SHARED_MAX;
  p->sharedMemPerMultiprocessor = 228 << 10;
  p->totalConstMem = 64 << 10;
  p->memPitch = 2147483647;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->major = 9;
  p->multiProcessorCount = 132;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->l2CacheSize = 50 << 20;
  p->memoryBusWidth = 5120;
  p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->concurrentManagedAccess = 1;
  p->canMapHostMemory = 1;
  p->asyncEngineCount = 3;
  return cudaSuccess;
}

EMU_API cudaError_t cudaStreamCreate(cudaStream_t *stream) { return make_stream(stream); }
EMU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { return make_stream(stream); }
EMU_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) { return make_stream(stream); }
EMU_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!streams.erase(stream)) return fail(cudaErrorInvalidResourceHandle);
  delete reinterpret_cast<char *>(stream);
  return lasting;
}
EMU_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return with_stream(stream); }
EMU_API cudaError_t cudaStreamQuery(cudaStream_t stream) { return with_stream(stream); }
EMU_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return event_of(event) ? with_stream(stream) : fail(cudaErrorInvalidResourceHandle);
}
EMU_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument) {
  if (cudaError_t error = with_stream(stream)) return error;
  function(argument);
  return cudaSuccess;
}
EMU_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *argument, unsigned) {
  if (cudaError_t error = with_stream(stream)) return error;
  function(stream, cudaSuccess, argument);
  return cudaSuccess;
}

EMU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags) {
  if (lasting) return lasting;
  auto *event = new Event{!(flags & cudaEventDisableTiming), false, 0};
  events.insert(event);
  *handle = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}
EMU_API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Event *event = event_of(handle);
  if (!event) return fail(cudaErrorInvalidResourceHandle);
  events.erase(event);
  delete event;
  return lasting;
}
EMU_API cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  if (cudaError_t error = with_stream(stream)) return error;
  Event *event = event_of(handle);
  if (!event) return fail(cudaErrorInvalidResourceHandle);
  event->recorded = true;
  event->seconds = now();
  return cudaSuccess;
}
EMU_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  if (lasting) return lasting;
  return event_of(handle) ? cudaSuccess : fail(cudaErrorInvalidResourceHandle);
}
EMU_API cudaError_t cudaEventQuery(cudaEvent_t handle) { return cudaEventSynchronize(handle); }
EMU_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (lasting) return lasting;
  const Event *a = event_of(start), *b = event_of(stop);
  if (!a || !b || !a->timed || !b->timed || !a->recorded || !b->recorded) return fail(cudaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>(1e3 * (b->seconds - a->seconds));
  return cudaSuccess;
}
