// Cooperative groups, as far as the structural analysis asks: ranks, sizes, syncs.
#pragma once
#include "cuda_runtime.h"
namespace cooperative_groups {
struct thread_group {
  __device__ void sync() const; __device__ unsigned size() const; __device__ unsigned num_threads() const; __device__ unsigned thread_rank() const;
};
struct thread_block : thread_group {
  __device__ void sync() const; __device__ unsigned size() const; __device__ unsigned num_threads() const; __device__ unsigned thread_rank() const;
  __device__ dim3 group_index() const; __device__ dim3 thread_index() const; __device__ dim3 group_dim() const; __device__ dim3 dim_threads() const;
};
struct grid_group : thread_group {
  __device__ void sync() const; __device__ unsigned long long size() const; __device__ unsigned long long num_threads() const;
  __device__ unsigned long long thread_rank() const; __device__ dim3 block_index() const; __device__ dim3 dim_blocks() const;
  __device__ unsigned long long block_rank() const; __device__ bool is_valid() const; __device__ unsigned long long num_blocks() const;
};
template <unsigned Size, class Parent = thread_block> struct thread_block_tile : thread_group {
  __device__ void sync() const; __device__ unsigned size() const; __device__ unsigned num_threads() const; __device__ unsigned thread_rank() const;
  __device__ unsigned meta_group_rank() const; __device__ unsigned meta_group_size() const;
  template <class T> __device__ T shfl(T, int) const; template <class T> __device__ T shfl_down(T, unsigned) const;
  template <class T> __device__ T shfl_up(T, unsigned) const; template <class T> __device__ T shfl_xor(T, unsigned) const;
  __device__ int any(int) const; __device__ int all(int) const; __device__ unsigned ballot(int) const;
};
struct coalesced_group : thread_group {
  __device__ void sync() const; __device__ unsigned size() const; __device__ unsigned thread_rank() const;
  template <class T> __device__ T shfl(T, int) const;
};
__device__ thread_block this_thread_block();
__device__ grid_group this_grid();
__device__ coalesced_group coalesced_threads();
template <unsigned Size, class Parent> __device__ thread_block_tile<Size, Parent> tiled_partition(const Parent &);
template <class Group> __device__ void sync(const Group &);
template <class T> struct plus { __device__ T operator()(T, T) const; };
template <class T> struct less { __device__ T operator()(T, T) const; };
template <class T> struct greater { __device__ T operator()(T, T) const; };
template <class Group, class T, class Op> __device__ T reduce(const Group &, T, Op);
template <class Group, class T, class Op> __device__ T inclusive_scan(const Group &, T, Op);
template <class Group, class T> __device__ T inclusive_scan(const Group &, T);
template <class Group, class T> __device__ T exclusive_scan(const Group &, T);
template <class Group, class T, class Op> __device__ T exclusive_scan(const Group &, T, Op);
template <class Group, class T> __device__ void memcpy_async(const Group &, T *, const T *, size_t);
template <class Group> __device__ void wait(const Group &);
}
