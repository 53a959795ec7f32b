// Atomic operations. Fibers switch only at calls of the runtime, so a plain read-modify-write is atomic; the runtime is
// told first (address, line), so that it can check the access and order threads by it.
#pragma once
#include "sync.h"

namespace emu {
template <class T> EMU_UNCHECKED inline bool same_bits(const T &a, const T &b) {
  return __builtin_memcmp(static_cast<const void *>(&a), static_cast<const void *>(&b), sizeof(T)) == 0;
}
// An atomic that changed nothing may be one turn of a spin-wait: the runtime then lets other threads run.
template <class T, class Change> EMU_UNCHECKED inline T modify(T *address, int line, Change change) {
  emu_atomic(const_cast<const std::remove_cv_t<T> *>(address), sizeof(T), line);
  std::remove_cv_t<T> before = *address, after = change(before);
  *const_cast<std::remove_cv_t<T> *>(address) = after;
  if (same_bits(before, after)) emu_atomic_unchanged(line);
  return before;
}
} // namespace emu

#define EMU_ATOMIC(NAME, RESULT)                                                                                       \
  template <class T, class U> EMU_UNCHECKED inline T NAME(T *address, U operand_, int line = __builtin_LINE()) {       \
    using V = std::remove_cv_t<T>;                                                                                     \
    V operand = static_cast<V>(operand_);                                                                              \
    return emu::modify(address, line, [operand](V old) EMU_UNCHECKED { return static_cast<V>(RESULT); });              \
  }                                                                                                                    \
  template <class T, class U> EMU_UNCHECKED inline T NAME##_block(T *address, U operand, int line = __builtin_LINE()) {\
    return NAME(address, operand, line);                                                                               \
  }                                                                                                                    \
  template <class T, class U> EMU_UNCHECKED inline T NAME##_system(T *address, U operand,                              \
                                                                   int line = __builtin_LINE()) {                      \
    return NAME(address, operand, line);                                                                               \
  }
EMU_ATOMIC(atomicAdd, old + operand)
EMU_ATOMIC(atomicSub, old - operand)
EMU_ATOMIC(atomicExch, operand)
EMU_ATOMIC(atomicMin, operand < old ? operand : old)
EMU_ATOMIC(atomicMax, old < operand ? operand : old)
EMU_ATOMIC(atomicAnd, old &operand)
EMU_ATOMIC(atomicOr, old | operand)
EMU_ATOMIC(atomicXor, old ^ operand)
EMU_ATOMIC(atomicInc, old >= operand ? 0 : old + 1)
EMU_ATOMIC(atomicDec, old == 0 || old > operand ? operand : old - 1)
#undef EMU_ATOMIC

template <class T, class U, class V>
EMU_UNCHECKED inline T atomicCAS(T *address, U compare_, V value_, int line = __builtin_LINE()) {
  using W = std::remove_cv_t<T>;
  W compare = static_cast<W>(compare_), value = static_cast<W>(value_);
  return emu::modify(address, line, [=](W old) EMU_UNCHECKED { return emu::same_bits(old, compare) ? value : old; });
}
template <class T, class U, class V>
EMU_UNCHECKED inline T atomicCAS_block(T *address, U compare, V value, int line = __builtin_LINE()) {
  return atomicCAS(address, compare, value, line);
}
template <class T, class U, class V>
EMU_UNCHECKED inline T atomicCAS_system(T *address, U compare, V value, int line = __builtin_LINE()) {
  return atomicCAS(address, compare, value, line);
}
