// Cooperative groups below the grid: the block, tiles of a warp, coalesced threads.
#pragma once
#include <cuda_runtime.h>

namespace cooperative_groups {

class thread_block {
public:
  static EMU_INLINE void sync(int line = __builtin_LINE()) { __syncthreads(line); }
  static EMU_INLINE unsigned thread_rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  static EMU_INLINE unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static EMU_INLINE unsigned num_threads() { return size(); }
  static EMU_INLINE dim3 group_index() { return dim3(blockIdx); }
  static EMU_INLINE dim3 thread_index() { return dim3(threadIdx); }
  static EMU_INLINE dim3 group_dim() { return blockDim; }
  static EMU_INLINE dim3 dim_threads() { return blockDim; }
};
EMU_INLINE thread_block this_thread_block() { return {}; }

// Lanes of one warp by their mask; ranks count the lanes named.
class coalesced_group {
public:
  explicit EMU_INLINE coalesced_group(unsigned mask) : mask_(mask) {}
  EMU_INLINE unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  EMU_INLINE unsigned num_threads() const { return size(); }
  EMU_INLINE unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & ((1u << (thread_block::thread_rank() & 31)) - 1)));
  }
  EMU_INLINE void sync(int line = __builtin_LINE()) const { __syncwarp(mask_, line); }
  template <class T> EMU_INLINE T shfl(T value, unsigned rank, int line = __builtin_LINE()) const {
    return __shfl_sync(mask_, value, lane(rank % size()), 32, line);
  }
  template <class T> EMU_INLINE T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    unsigned rank = thread_rank() + delta < size() ? thread_rank() + delta : thread_rank();
    return __shfl_sync(mask_, value, lane(rank), 32, line);
  }
  template <class T> EMU_INLINE T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    unsigned rank = thread_rank() >= delta ? thread_rank() - delta : thread_rank();
    return __shfl_sync(mask_, value, lane(rank), 32, line);
  }
  EMU_INLINE int any(int predicate, int line = __builtin_LINE()) const { return __any_sync(mask_, predicate, line); }
  EMU_INLINE int all(int predicate, int line = __builtin_LINE()) const { return __all_sync(mask_, predicate, line); }
  EMU_INLINE unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    unsigned lanes = __ballot_sync(mask_, predicate, line), ranks = 0;
    for (unsigned rank = 0; rank < size(); rank++) ranks |= (lanes >> lane(rank) & 1u) << rank;
    return ranks;
  }

private:
  int lane(unsigned rank) const {
    unsigned rest = mask_;
    while (rank--) rest &= rest - 1;
    return __ffs(static_cast<int>(rest)) - 1;
  }
  unsigned mask_;
};
EMU_INLINE coalesced_group coalesced_threads(int line = __builtin_LINE()) {
  return coalesced_group(__activemask(line));
}

template <unsigned N, class Parent = thread_block> class thread_block_tile {
  static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

public:
  EMU_INLINE unsigned thread_rank() const { return lane() & (N - 1); }
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  EMU_INLINE unsigned meta_group_rank() const { return thread_block::thread_rank() / N; }
  EMU_INLINE unsigned meta_group_size() const { return (thread_block::size() + N - 1) / N; }
  EMU_INLINE void sync(int line = __builtin_LINE()) const { __syncwarp(mask(), line); }
  template <class T> EMU_INLINE T shfl(T value, int rank, int line = __builtin_LINE()) const {
    return __shfl_sync(mask(), value, rank, N, line);
  }
  template <class T> EMU_INLINE T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    return __shfl_down_sync(mask(), value, delta, N, line);
  }
  template <class T> EMU_INLINE T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    return __shfl_up_sync(mask(), value, delta, N, line);
  }
  template <class T> EMU_INLINE T shfl_xor(T value, unsigned lanes, int line = __builtin_LINE()) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lanes), N, line);
  }
  EMU_INLINE int any(int predicate, int line = __builtin_LINE()) const { return __any_sync(mask(), predicate, line); }
  EMU_INLINE int all(int predicate, int line = __builtin_LINE()) const { return __all_sync(mask(), predicate, line); }
  EMU_INLINE unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    return __ballot_sync(mask(), predicate, line) >> (lane() & ~(N - 1));
  }
  template <class T> EMU_INLINE unsigned match_any(T value, int line = __builtin_LINE()) const {
    return __match_any_sync(mask(), value, line) >> (lane() & ~(N - 1));
  }

private:
  static EMU_INLINE unsigned lane() { return thread_block::thread_rank() & 31; }
  static EMU_INLINE unsigned mask() { return N == 32 ? 0xffffffffu : ((1u << (N & 31)) - 1) << (lane() & ~(N - 1)); }
};
template <unsigned N, class Parent> EMU_INLINE thread_block_tile<N, Parent> tiled_partition(const Parent &) {
  return {};
}

// Any of the above, as samples pass it to functions.
class thread_group {
public:
  EMU_INLINE thread_group(thread_block block) : size_(block.size()), rank_(block.thread_rank()) {}
  template <unsigned N, class P>
  EMU_INLINE thread_group(thread_block_tile<N, P> tile)
      : size_(N), rank_(tile.thread_rank()),
        mask_(N == 32 ? 0xffffffffu
                      : ((1u << (N & 31)) - 1) << ((thread_block::thread_rank() & 31) & ~(N - 1))) {}
  EMU_INLINE unsigned size() const { return size_; }
  EMU_INLINE unsigned num_threads() const { return size_; }
  EMU_INLINE unsigned thread_rank() const { return rank_; }
  EMU_INLINE void sync(int line = __builtin_LINE()) const { mask_ ? __syncwarp(mask_, line) : __syncthreads(line); }

private:
  unsigned size_, rank_, mask_ = 0;
};

template <class Group> EMU_INLINE void sync(const Group &group, int line = __builtin_LINE()) { group.sync(line); }

} // namespace cooperative_groups
