// The memory part of the host API: allocation, copies, fills, with every pointer and extent checked.
#include <cstring>

#include "../include/emu/runtime_api.h"
#include "block.h"
#include "config.h"
#include "errors.h"
#include "memory.h"
#include "module.h"
#include "report.h"
#include "shadow.h"

namespace emu {

namespace {

bool is_device_variable(const void *p) {
  const Module &m = module();
  return m.globals && p >= m.globals && p < m.globals + m.globals_size;
}

// A range that a call takes for device memory must lie in one live allocation.
cudaError_t check_device_range(const char *call, const char *part, const void *p, size_t size, Site site) {
  if (is_device_variable(p)) return cudaSuccess; // from cudaGetSymbolAddress
  const Allocation *a = allocation_at(p);
  std::string problem;
  if (!a)
    problem = in_arena(p) ? "lies at " + describe(p) : "is a host pointer where a device pointer is needed";
  else if (a->kind == EMU_PINNED)
    return cudaSuccess; // page-locked host memory has a device address of the same value
  else if (!a->live)
    problem = "lies in freed memory: " + describe(p);
  else if (size > static_cast<size_t>(a->end() - static_cast<const char *>(p)))
    problem = format("of %zu bytes runs %zu bytes past the end: it begins at %s", size,
                     size - static_cast<size_t>(a->end() - static_cast<const char *>(p)), describe(p).c_str());
  if (problem.empty()) return cudaSuccess;
  report("bad-copy", site, format("%s: the %s %s", call, part, problem.c_str()));
  return fail(cudaErrorInvalidValue);
}

cudaError_t check_host_range(const char *call, const char *part, const void *p, size_t size, Site site) {
  const Allocation *a = allocation_at(p);
  if (a && a->kind == EMU_PINNED && size > static_cast<size_t>(a->end() - static_cast<const char *>(p))) {
    report("bad-copy", site, format("%s: the %s of %zu bytes runs past the end of a pinned allocation of %zu bytes",
                                    call, part, size, a->size));
    return fail(cudaErrorInvalidValue);
  }
  if (!in_arena(p) || (a && a->kind == EMU_MANAGED && a->live)) return cudaSuccess;
  report("bad-copy", site,
         format("%s: the %s is a device pointer where a host pointer is needed", call, part));
  return fail(cudaErrorInvalidValue);
}

// Bytes that no kernel wrote reach the host. A short gap between written bytes is most likely a struct's padding.
void check_uninitialised(const void *from, size_t size, Site site) {
  Uninitialised u = uninitialised_in(from, size);
  if (!u.bytes || seen("uninit-copy", site)) return;
  bool padding = u.longest < 8 && u.first != 0 && u.bytes < size;
  report("uninit-copy", site,
         format("%zu of %zu bytes copied to the host were never written, the first at %s", u.bytes, size,
                describe(static_cast<const char *>(from) + u.first).c_str()),
         padding ? Severity::note : Severity::error);
}

cudaError_t copy(const char *call, void *to, const void *from, size_t size, cudaMemcpyKind kind, Site site) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return fail(cudaErrorInvalidMemcpyDirection);
  if (!size) return cudaSuccess;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = in_arena(to) || is_device_variable(to);
    from_device = in_arena(from) || is_device_variable(from);
  }
  if (!to || !from) {
    report("null-pointer", site, format("%s: the %s is null", call, to ? "source" : "destination"));
    return fail(cudaErrorInvalidValue);
  }
  auto check_to = to_device ? check_device_range : check_host_range;
  auto check_from = from_device ? check_device_range : check_host_range;
  if (cudaError_t error = check_to(call, "destination", to, size, site)) return error;
  if (cudaError_t error = check_from(call, "source", from, size, site)) return error;
  memmove(to, from, size);
  if (!config.check) return cudaSuccess;
  if (to_device) copy_initialised(to, from, size);
  if (from_device && !to_device) check_uninitialised(from, size, site);
  return cudaSuccess;
}

cudaError_t fill(const char *call, void *to, int value, size_t size, Site site) {
  if (!size) return cudaSuccess;
  if (cudaError_t error = check_device_range(call, "destination", to, size, site)) return error;
  memset(to, value, size);
  if (config.check) mark_initialised(to, size);
  return cudaSuccess;
}

// Host calls are refused inside kernels and after a kernel died.
cudaError_t refuse(const char *call) {
  if (run.current) emu_unsupported(call, 0);
  return lasting_error();
}

} // namespace

} // namespace emu

using namespace emu;

EMU_API cudaError_t emu_malloc(void **pointer, size_t size, int memory) {
  if (cudaError_t error = refuse("cudaMalloc inside a kernel")) return error;
  return allocate(pointer, size, static_cast<emu_memory>(memory), EMU_CALLER);
}

EMU_API cudaError_t cudaFree(void *pointer) {
  if (cudaError_t error = refuse("cudaFree inside a kernel")) return error;
  return release(pointer, false, EMU_CALLER);
}

EMU_API cudaError_t cudaFreeAsync(void *pointer, cudaStream_t) {
  if (cudaError_t error = refuse("cudaFreeAsync inside a kernel")) return error;
  return release(pointer, false, EMU_CALLER);
}

EMU_API cudaError_t cudaFreeHost(void *pointer) {
  if (cudaError_t error = refuse("cudaFreeHost inside a kernel")) return error;
  return release(pointer, true, EMU_CALLER);
}

EMU_API cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned) {
  return pointer && size ? cudaSuccess : fail(cudaErrorInvalidValue);
}

EMU_API cudaError_t cudaHostUnregister(void *pointer) {
  return pointer ? cudaSuccess : fail(cudaErrorInvalidValue);
}

EMU_API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
  if (cudaError_t error = refuse("cudaMemcpy inside a kernel")) return error;
  return copy("cudaMemcpy", to, from, size, kind, EMU_CALLER);
}

EMU_API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                 size_t height, cudaMemcpyKind kind) {
  if (cudaError_t error = refuse("cudaMemcpy2D inside a kernel")) return error;
  if (height > 1 && (width > to_pitch || width > from_pitch)) return fail(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; row++)
    if (cudaError_t error = copy("cudaMemcpy2D", static_cast<char *>(to) + row * to_pitch,
                                 static_cast<const char *>(from) + row * from_pitch, width, kind, EMU_CALLER))
      return error;
  return cudaSuccess;
}

EMU_API cudaError_t cudaMemset(void *to, int value, size_t size) {
  if (cudaError_t error = refuse("cudaMemset inside a kernel")) return error;
  return fill("cudaMemset", to, value, size, EMU_CALLER);
}

EMU_API cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  if (cudaError_t error = refuse("cudaMemset2D inside a kernel")) return error;
  if (height > 1 && width > pitch) return fail(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; row++)
    if (cudaError_t error = fill("cudaMemset2D", static_cast<char *>(to) + row * pitch, value, width, EMU_CALLER))
      return error;
  return cudaSuccess;
}

EMU_API cudaError_t emu_symbol_copy(void *to, const void *from, size_t size, size_t symbol_size, size_t offset,
                                    int to_symbol) {
  if (cudaError_t error = refuse("a symbol copy inside a kernel")) return error;
  const char *call = to_symbol ? "cudaMemcpyToSymbol" : "cudaMemcpyFromSymbol";
  Site site = EMU_CALLER;
  if (offset > symbol_size || size > symbol_size - offset) {
    report("bad-copy", site, format("%s: %zu bytes at offset %zu of a symbol of %zu bytes", call, size, offset,
                                    symbol_size));
    return fail(cudaErrorInvalidValue);
  }
  // The other side may be host or device memory.
  if (to_symbol) return copy(call, static_cast<char *>(to) + offset, from, size, cudaMemcpyDefault, site);
  return copy(call, to, static_cast<const char *>(from) + offset, size, cudaMemcpyDefault, site);
}

EMU_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *total = ARENA_BYTES;
  *free = ARENA_BYTES - bytes_in_use();
  return lasting_error();
}

EMU_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  const Allocation *a = allocation_at(pointer);
  auto *p = const_cast<void *>(pointer);
  if (!a || !a->live)
    *attributes = {cudaMemoryTypeUnregistered, 0, nullptr, p};
  else if (a->kind == EMU_PINNED)
    *attributes = {cudaMemoryTypeHost, 0, p, p};
  else if (a->kind == EMU_MANAGED)
    *attributes = {cudaMemoryTypeManaged, 0, p, p};
  else
    *attributes = {cudaMemoryTypeDevice, 0, p, nullptr};
  return cudaSuccess;
}
