// cg::inclusive_scan and cg::exclusive_scan over a tile.
#pragma once
#include <cooperative_groups/reduce.h>

namespace cooperative_groups {

template <unsigned N, class P, class T, class F>
EMU_INLINE T inclusive_scan(const thread_block_tile<N, P> &tile, T value, F operation, int line = __builtin_LINE()) {
  for (unsigned delta = 1; delta < N; delta *= 2) {
    T below = tile.shfl_up(value, delta, line);
    if (tile.thread_rank() >= delta) value = operation(below, value);
  }
  return value;
}
template <unsigned N, class P, class T>
EMU_INLINE T inclusive_scan(const thread_block_tile<N, P> &tile, T value, int line = __builtin_LINE()) {
  return inclusive_scan(tile, value, plus<T>(), line);
}
template <unsigned N, class P, class T, class F>
EMU_INLINE T exclusive_scan(const thread_block_tile<N, P> &tile, T value, F operation, int line = __builtin_LINE()) {
  T below = tile.shfl_up(inclusive_scan(tile, value, operation, line), 1, line);
  return tile.thread_rank() ? below : T();
}
template <unsigned N, class P, class T>
EMU_INLINE T exclusive_scan(const thread_block_tile<N, P> &tile, T value, int line = __builtin_LINE()) {
  return exclusive_scan(tile, value, plus<T>(), line);
}

} // namespace cooperative_groups
