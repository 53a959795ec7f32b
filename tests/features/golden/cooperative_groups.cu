/* thread_rank() is the flat index: stride 1. block.sync() and tile.sync() count; the reduction is one warp's.
   `tile.thread_rank() == 0` splits a warp: div 1. Load and (guarded) store part[blockIdx.x]: stride 0 -> 0.2.
   One multiplication v*v. Shared memory is no global access.
   coal = (1.0 + 0.2)/2
   ai = log1p(1/8)
   occ = 1.0
   div = 1 + 1
   xfer = 0
   atomics = 0
   sync = 2
   kernels = 1
   tpb = 128
   gmem = log1p(2)
   ops = log1p(1)
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void norms(const float *x, float *part) {
  __shared__ float sums[4];
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  float v = x[block.group_index().x * block.size() + block.thread_rank()];
  v = v * v;
  v = cg::reduce(tile, v, cg::plus<float>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = v;
  tile.sync();
  block.sync();
  if (block.thread_rank() == 0) part[block.group_index().x] = sums[0];
}
extern "C" int norms_device(const float *x, float *part, int n, cudaStream_t s) {
  norms<<<n / 128, 128, 0, s>>>(x, part);
  return cudaGetLastError();
}
