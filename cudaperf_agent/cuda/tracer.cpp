// Records what the device and the CUDA runtime do during one call, through CUPTI, inside the process of a timer.
//
// It explains and never decides: its records lie in the candidate's process, which could change them. The timer loads it
// with the candidate and asks for the records after each call. One line of text per record, times in nanoseconds:
//   call START END
//   kernel START END GRID BLOCK REGISTERS STATIC_SHARED DYNAMIC_SHARED NAME
//   copy KIND BYTES START END CORRELATION     KIND as CUPTI numbers it: 1 host to device, 2 device to host, 8 on it
//   memset BYTES START END
//   api START END CORRELATION NAME            runtime calls that copy, allocate, free, launch or call back
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include <cupti.h>

namespace {

constexpr size_t BUFFER = 1 << 20;
std::string lines;
std::mutex lock;
uint64_t started;

void give(uint8_t **buffer, size_t *size, size_t *most) {
  void *at = nullptr;
  *most = 0;
  *size = posix_memalign(&at, 8, BUFFER) ? 0 : BUFFER;
  *buffer = static_cast<uint8_t *>(at);
}

void line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void line(const char *format, ...) {
  char text[768];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text - 2, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  for (char *at = text; *at; at++)
    if (*at == '\n') *at = ' ';
  lines += text;
  lines += '\n';
}

bool wanted(const char *name) {
  for (const char *part : {"Memcpy", "Malloc", "Free", "Launch", "HostFunc", "HostAlloc", "AddCallback"})
    if (strstr(name, part)) return true;
  return false;
}

using U64 = unsigned long long;

void note(const CUpti_Activity *record) {
  switch (record->kind) {
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
  case CUPTI_ACTIVITY_KIND_KERNEL: {
    auto *k = reinterpret_cast<const CUpti_ActivityKernel10 *>(record);
    line("kernel %llu %llu %llu %llu %u %d %d %s", U64(k->start), U64(k->end), U64(k->gridX) * U64(k->gridY) * U64(k->gridZ),
         U64(k->blockX) * U64(k->blockY) * U64(k->blockZ), unsigned(k->registersPerThread), k->staticSharedMemory,
         k->dynamicSharedMemory, k->name ? k->name : "?");
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMCPY: {
    auto *c = reinterpret_cast<const CUpti_ActivityMemcpy6 *>(record);
    line("copy %u %llu %llu %llu %u", unsigned(c->copyKind), U64(c->bytes), U64(c->start), U64(c->end), c->correlationId);
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMSET: {
    auto *m = reinterpret_cast<const CUpti_ActivityMemset4 *>(record);
    line("memset %llu %llu %llu", U64(m->bytes), U64(m->start), U64(m->end));
    break;
  }
  case CUPTI_ACTIVITY_KIND_RUNTIME: {
    auto *a = reinterpret_cast<const CUpti_ActivityAPI *>(record);
    const char *name = nullptr;
    if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, a->cbid, &name) == CUPTI_SUCCESS && name && wanted(name))
      line("api %llu %llu %u %s", U64(a->start), U64(a->end), a->correlationId, name);
    break;
  }
  default:
    break;
  }
}

void take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  std::lock_guard<std::mutex> held(lock);
  CUpti_Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) note(record);
  free(buffer);
}

} // namespace

extern "C" int cudaperf_trace_start() {
  if (cuptiActivityRegisterCallbacks(give, take) != CUPTI_SUCCESS) return 1;
  for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                  CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME})
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) return 2;
  return 0;
}

extern "C" void cudaperf_trace_before() {
  cuptiActivityFlushAll(1);
  std::lock_guard<std::mutex> held(lock);
  lines.clear();
  cuptiGetTimestamp(&started);
}

extern "C" const char *cudaperf_trace_after() {
  uint64_t ended = 0;
  cuptiGetTimestamp(&ended);
  cuptiActivityFlushAll(1);
  std::lock_guard<std::mutex> held(lock);
  line("call %llu %llu", U64(started), U64(ended));
  return lines.c_str();
}
