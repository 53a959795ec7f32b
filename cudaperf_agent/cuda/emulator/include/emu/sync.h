// Barriers, fences and warp operations. The line of the call travels as a default argument.
#pragma once
#include <cstring>

#include "launch.h"

EMU_INLINE void __syncthreads(int line = __builtin_LINE()) { emu_barrier(line); }
EMU_INLINE int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return emu_barrier_vote_on(EMU_COUNT, predicate, line);
}
EMU_INLINE int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return emu_barrier_vote_on(EMU_ALL, predicate, line);
}
EMU_INLINE int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return emu_barrier_vote_on(EMU_ANY, predicate, line);
}
EMU_INLINE void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  emu_warp(EMU_SYNC, mask, 0, 0, 32, line);
}
EMU_INLINE void __threadfence_block() { emu_fence(0); }
EMU_INLINE void __threadfence() { emu_fence(1); }
EMU_INLINE void __threadfence_system() { emu_fence(1); }
EMU_INLINE unsigned __activemask(int line = __builtin_LINE()) { return emu_active_mask(line); }

namespace emu {
// Any value of up to eight bytes travels as its bits.
template <class T>
EMU_UNCHECKED inline T exchange(int operation, unsigned mask, T value, int argument, int width, int line) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most eight bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = emu_warp(operation, mask, bits, argument, width, line);
  __builtin_memcpy(static_cast<void *>(&value), &bits, sizeof value);
  return value;
}
template <class T> EMU_UNCHECKED inline uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8, "at most eight bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
} // namespace emu

template <class T>
EMU_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32, int line = __builtin_LINE()) {
  return emu::exchange(EMU_SHFL, mask, value, lane, width, line);
}
template <class T>
EMU_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  return emu::exchange(EMU_SHFL_UP, mask, value, static_cast<int>(delta), width, line);
}
template <class T>
EMU_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  return emu::exchange(EMU_SHFL_DOWN, mask, value, static_cast<int>(delta), width, line);
}
template <class T>
EMU_INLINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, int line = __builtin_LINE()) {
  return emu::exchange(EMU_SHFL_XOR, mask, value, lanes, width, line);
}

EMU_INLINE unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<unsigned>(emu_warp(EMU_BALLOT, mask, predicate != 0, 0, 32, line));
}
EMU_INLINE int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return emu_warp(EMU_BALLOT, mask, predicate != 0, 0, 32, line) != 0;
}
EMU_INLINE int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return emu_warp(EMU_BALLOT, mask, predicate == 0, 0, 32, line) == 0;
}
template <class T> EMU_INLINE unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return static_cast<unsigned>(emu_warp(EMU_MATCH_ANY, mask, emu::bits_of(value), 0, 32, line));
}
template <class T>
EMU_INLINE unsigned __match_all_sync(unsigned mask, T value, int *predicate, int line = __builtin_LINE()) {
  unsigned same = static_cast<unsigned>(emu_warp(EMU_MATCH_ALL, mask, emu::bits_of(value), 0, 32, line));
  *predicate = same != 0;
  return same;
}

#define EMU_REDUCE(NAME, TYPE, OPERATION)                                                                              \
  EMU_INLINE TYPE NAME(unsigned mask, TYPE value, int line = __builtin_LINE()) {                                       \
    return static_cast<TYPE>(emu_warp(OPERATION, mask, static_cast<uint32_t>(value), 0, 32, line));                    \
  }
EMU_REDUCE(__reduce_add_sync, int, EMU_ADD)
EMU_REDUCE(__reduce_add_sync, unsigned, EMU_ADD)
EMU_REDUCE(__reduce_min_sync, int, EMU_MIN)
EMU_REDUCE(__reduce_min_sync, unsigned, EMU_UMIN)
EMU_REDUCE(__reduce_max_sync, int, EMU_MAX)
EMU_REDUCE(__reduce_max_sync, unsigned, EMU_UMAX)
EMU_REDUCE(__reduce_and_sync, unsigned, EMU_AND)
EMU_REDUCE(__reduce_or_sync, unsigned, EMU_OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, EMU_XOR)
#undef EMU_REDUCE
