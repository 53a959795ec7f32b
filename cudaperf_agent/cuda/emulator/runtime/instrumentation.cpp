// What g++ calls: -fsanitize=thread before every access of memory, -fsanitize=bounds before an index out of range, and
// the linker's --wrap for the C functions that touch memory or end the process.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "block.h"
#include "errors.h"
#include "memory.h"
#include "ordering.h"
#include "report.h"
#include "shadow.h"

using emu::Access;

#define EMU_HOOKS(SIZE)                                                                                                \
  EMU_API void __tsan_read##SIZE(void *p) { emu::check_access(p, SIZE, Access::read, EMU_CALLER); }                    \
  EMU_API void __tsan_write##SIZE(void *p) { emu::check_access(p, SIZE, Access::write, EMU_CALLER); }                  \
  EMU_API void __tsan_unaligned_read##SIZE(void *p) { emu::check_access(p, SIZE, Access::read, EMU_CALLER, false); }   \
  EMU_API void __tsan_unaligned_write##SIZE(void *p) { emu::check_access(p, SIZE, Access::write, EMU_CALLER, false); } \
  EMU_API void __tsan_volatile_write##SIZE(void *p) {                                                                  \
    emu::check_access(p, SIZE, Access::volatile_write, EMU_CALLER);                                                    \
  }                                                                                                                    \
  EMU_API void __tsan_volatile_read##SIZE(void *p) {                                                                   \
    emu::check_access(p, SIZE, Access::volatile_read, EMU_CALLER);                                                     \
    if (emu::run.current) emu::spin(EMU_CALLER);                                                                                \
  }                                                                                                                    \
  EMU_API void __tsan_unaligned_volatile_read##SIZE(void *p) {                                                         \
    emu::check_access(p, SIZE, Access::volatile_read, EMU_CALLER, false);                                              \
  }                                                                                                                    \
  EMU_API void __tsan_unaligned_volatile_write##SIZE(void *p) {                                                        \
    emu::check_access(p, SIZE, Access::volatile_write, EMU_CALLER, false);                                             \
  }
EMU_HOOKS(1)
EMU_HOOKS(2)
EMU_HOOKS(4)
EMU_HOOKS(8)
EMU_HOOKS(16)

EMU_API void __tsan_read_range(void *p, unsigned long size) {
  emu::check_access(p, size, Access::read, EMU_CALLER, false);
}
EMU_API void __tsan_write_range(void *p, unsigned long size) {
  emu::check_access(p, size, Access::write, EMU_CALLER, false);
}
EMU_API void __tsan_init() {}
EMU_API void __tsan_func_entry(void *) {}
EMU_API void __tsan_func_exit() {}
EMU_API void __tsan_vptr_update(void **, void *) {}
EMU_API void __tsan_vptr_read(void **) {}

// std::atomic and function-local statics of host code: one thread, so the plain operation will do.
#define EMU_ATOMIC_HOOKS(BITS, TYPE)                                                                                   \
  EMU_API TYPE __tsan_atomic##BITS##_load(const volatile TYPE *p, int) { return *p; }                                  \
  EMU_API void __tsan_atomic##BITS##_store(volatile TYPE *p, TYPE v, int) { *p = v; }                                  \
  EMU_API TYPE __tsan_atomic##BITS##_exchange(volatile TYPE *p, TYPE v, int) {                                         \
    TYPE old = *p;                                                                                                     \
    *p = v;                                                                                                            \
    return old;                                                                                                        \
  }                                                                                                                    \
  EMU_API TYPE __tsan_atomic##BITS##_fetch_add(volatile TYPE *p, TYPE v, int) {                                        \
    TYPE old = *p;                                                                                                     \
    *p = static_cast<TYPE>(old + v);                                                                                   \
    return old;                                                                                                        \
  }                                                                                                                    \
  EMU_API TYPE __tsan_atomic##BITS##_fetch_sub(volatile TYPE *p, TYPE v, int) {                                        \
    TYPE old = *p;                                                                                                     \
    *p = static_cast<TYPE>(old - v);                                                                                   \
    return old;                                                                                                        \
  }                                                                                                                    \
  EMU_API TYPE __tsan_atomic##BITS##_fetch_and(volatile TYPE *p, TYPE v, int) {                                        \
    TYPE old = *p;                                                                                                     \
    *p = static_cast<TYPE>(old & v);                                                                                   \
    return old;                                                                                                        \
  }                                                                                                                    \
  EMU_API TYPE __tsan_atomic##BITS##_fetch_or(volatile TYPE *p, TYPE v, int) {                                         \
    TYPE old = *p;                                                                                                     \
    *p = static_cast<TYPE>(old | v);                                                                                   \
    return old;                                                                                                        \
  }                                                                                                                    \
  EMU_API TYPE __tsan_atomic##BITS##_fetch_xor(volatile TYPE *p, TYPE v, int) {                                        \
    TYPE old = *p;                                                                                                     \
    *p = static_cast<TYPE>(old ^ v);                                                                                   \
    return old;                                                                                                        \
  }                                                                                                                    \
  EMU_API int __tsan_atomic##BITS##_compare_exchange_strong(volatile TYPE *p, TYPE *expected, TYPE v, int, int) {      \
    if (*p == *expected) {                                                                                             \
      *p = v;                                                                                                          \
      return 1;                                                                                                        \
    }                                                                                                                  \
    *expected = *p;                                                                                                    \
    return 0;                                                                                                          \
  }                                                                                                                    \
  EMU_API int __tsan_atomic##BITS##_compare_exchange_weak(volatile TYPE *p, TYPE *expected, TYPE v, int a, int b) {    \
    return __tsan_atomic##BITS##_compare_exchange_strong(p, expected, v, a, b);                                        \
  }
EMU_ATOMIC_HOOKS(8, uint8_t)
EMU_ATOMIC_HOOKS(16, uint16_t)
EMU_ATOMIC_HOOKS(32, uint32_t)
EMU_ATOMIC_HOOKS(64, uint64_t)
EMU_API void __tsan_atomic_thread_fence(int) {}
EMU_API void __tsan_atomic_signal_fence(int) {}

EMU_API void emu_atomic(const void *address, size_t size, int line) {
  using namespace emu;
  if (!run.current) {
    if (config.check) check_access(address, size, Access::write, Site{0, line});
    return;
  }
  run.activity++;
  ordering_atomic(address);
  if (config.check) check_access(address, size, Access::atomic, Site{0, line});
}

// What g++ passes to the bounds check (GCC's libsanitizer/ubsan/ubsan_handlers.h).
struct BoundsData {
  const char *file;
  uint32_t line, column;
  const void *array_type, *index_type;
};

EMU_API void __ubsan_handle_out_of_bounds(void *data, void *index) {
  using namespace emu;
  const BoundsData &at = *static_cast<BoundsData *>(data);
  Site site{0, static_cast<int>(at.line)};
  if (!seen("oob-array", site))
    report("oob-array", site,
           format("%s: index %ld is outside the declared bounds of the array", where().c_str(),
                  static_cast<long>(reinterpret_cast<intptr_t>(index))));
  if (run.current) abandon_launch(cudaErrorIllegalAddress);
}

EMU_API void *__wrap_memcpy(void *to, const void *from, size_t size) {
  if (size) {
    emu::check_access(from, size, Access::read, EMU_CALLER, false);
    emu::check_access(to, size, Access::write, EMU_CALLER, false);
  }
  return memmove(to, from, size);
}
EMU_API void *__wrap_memmove(void *to, const void *from, size_t size) {
  if (size) {
    emu::check_access(from, size, Access::read, EMU_CALLER, false);
    emu::check_access(to, size, Access::write, EMU_CALLER, false);
  }
  return memmove(to, from, size);
}
EMU_API void *__wrap_memset(void *to, int value, size_t size) {
  if (size) emu::check_access(to, size, Access::write, EMU_CALLER, false);
  return memset(to, value, size);
}
EMU_API void *__wrap_malloc(size_t size) {
  if (emu::run.current) emu_unsupported("malloc inside a kernel", 0);
  return malloc(size);
}
EMU_API void *__wrap__Znwm(size_t size) {
  if (emu::run.current) emu_unsupported("new inside a kernel", 0);
  return ::operator new(size);
}
EMU_API void *__wrap__Znam(size_t size) {
  if (emu::run.current) emu_unsupported("new[] inside a kernel", 0);
  return ::operator new[](size);
}
EMU_API void __wrap___assert_fail(const char *condition, const char *file, unsigned line, const char *function) {
  using namespace emu;
  if (run.current) {
    report("device-assert", Site{0, static_cast<int>(line)}, format("%s: assertion failed: %s", where().c_str(), condition));
    abandon_launch(cudaErrorAssert);
  }
  fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, condition);
  abort();
}
EMU_API void __wrap__exit(int status) {
  emu::write_last_report();
  _exit(status);
}
EMU_API void __wrap__Exit(int status) {
  emu::write_last_report();
  _exit(status);
}
EMU_API void __wrap_quick_exit(int status) {
  emu::write_last_report();
  quick_exit(status);
}
