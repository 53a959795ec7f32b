// cg::reduce over a tile, by butterfly.
#pragma once
#include <cooperative_groups.h>

namespace cooperative_groups {

#define EMU_OPERATION(NAME, EXPRESSION)                                                                                \
  template <class T> struct NAME {                                                                                     \
    EMU_INLINE T operator()(T a, T b) const { return EXPRESSION; }                                                     \
  };
EMU_OPERATION(plus, a + b)
EMU_OPERATION(less, b < a ? b : a)
EMU_OPERATION(greater, a < b ? b : a)
EMU_OPERATION(bit_and, a &b)
EMU_OPERATION(bit_or, a | b)
EMU_OPERATION(bit_xor, a ^ b)
#undef EMU_OPERATION

template <unsigned N, class P, class T, class F>
EMU_INLINE T reduce(const thread_block_tile<N, P> &tile, T value, F operation, int line = __builtin_LINE()) {
  for (unsigned lanes = N / 2; lanes; lanes /= 2) value = operation(value, tile.shfl_xor(value, lanes, line));
  return value;
}

template <class T, class F>
EMU_INLINE T reduce(const coalesced_group &group, T value, F operation, int line = __builtin_LINE()) {
  T total = group.shfl(value, 0, line);
  for (unsigned rank = 1; rank < group.size(); rank++) total = operation(total, group.shfl(value, rank, line));
  return total;
}

} // namespace cooperative_groups
