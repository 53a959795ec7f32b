// A launch: is the configuration one that a GPU would take, then its blocks one after another.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "block.h"
#include "config.h"
#include "errors.h"
#include "faults.h"
#include "fiber.h"
#include "memory.h"
#include "module.h"
#include "ordering.h"
#include "races.h"
#include "report.h"
#include "shadow.h"

extern "C" uint3 emu_thread_index, emu_block_index;
extern "C" dim3 emu_block_dim, emu_grid_dim;

namespace emu {

namespace {

size_t dynamic_limit = SHARED_DEFAULT; // the largest any cudaFuncSetAttribute asked for

std::string shape(const char *kernel, uint3 grid, uint3 block) {
  return format("%s<<<(%u,%u,%u), (%u,%u,%u)>>>", kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z);
}

// The launch limits of compute capability 9.0 (CUDA C++ Programming Guide, "Compute Capabilities").
cudaError_t check_configuration(const char *kernel, int line, uint3 grid, uint3 block, size_t shared_bytes) {
  uint64_t threads_per_block = uint64_t(block.x) * block.y * block.z;
  const char *reason = nullptr;
  cudaError_t error = cudaErrorInvalidConfiguration;
  if (!grid.x || !grid.y || !grid.z)
    reason = "the grid has no blocks";
  else if (!threads_per_block)
    reason = "the block has no threads";
  else if (threads_per_block > MAX_THREADS)
    reason = "a block has at most 1024 threads";
  else if (block.x > 1024 || block.y > 1024 || block.z > 64)
    reason = "a block is at most 1024 x 1024 x 64";
  else if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    reason = "a grid is at most 2147483647 x 65535 x 65535";
  else if (shared_bytes > dynamic_limit) {
    reason = "more dynamic shared memory than cudaFuncSetAttribute has allowed (48 KiB without it)";
    error = cudaErrorInvalidValue;
  }
  if (!reason) return cudaSuccess;
  report("launch-config", Site{0, line}, shape(kernel, grid, block) + " does not run: " + reason);
  return error;
}

// Visits every block once, in the configured order. Random is a walk with a stride prime to the number of blocks.
class BlockOrder {
public:
  explicit BlockOrder(uint64_t blocks) : blocks_(blocks) {
    if (config.order != Order::random || blocks < 2) return;
    start_ = random_number() % blocks;
    do stride_ = 1 + random_number() % (blocks - 1);
    while (std::gcd(stride_, blocks) != 1);
  }
  uint64_t operator[](uint64_t i) const {
    if (config.order == Order::reverse) return blocks_ - 1 - i;
    return static_cast<uint64_t>((start_ + static_cast<unsigned __int128>(i) * stride_) % blocks_);
  }

private:
  uint64_t blocks_, start_ = 0, stride_ = 1;
};

void run_grid(uint3 grid, size_t shared_bytes) {
  const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
  const BlockOrder order(blocks);
  for (uint64_t i = 0; i < blocks && !run.abandoned; i++) {
    uint64_t b = order[i];
    emu_block_index = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                       static_cast<unsigned>(b / (uint64_t(grid.x) * grid.y))};
    begin_shared(shared_bytes);
    run_block();
    statistics.blocks++;
    statistics.threads += run.threads;
  }
}

} // namespace

} // namespace emu

EMU_API void emu_launch(const char *kernel, int line, uint3 grid, uint3 block, size_t shared_bytes,
                        void (*body)(void *), void *context, const emu_range *parameters, int parameter_count) {
  using namespace emu;
  if (run.current) emu_unsupported("launches from inside a kernel (dynamic parallelism)", line);
  if (lasting_error()) return;
  open_arena();
  if (cudaError_t error = check_configuration(kernel, line, grid, block, shared_bytes)) {
    fail(error);
    return;
  }
  const std::string statement = format("%s@%d", kernel, line);
  const bool dry = config.suppress && strcmp(config.suppress, "*") == 0;
  if (config.suppress && !dry && statement == config.suppress) return;
  run.kernel = kernel;
  run.body = body;
  run.context = context;
  run.parameters = parameters;
  run.parameter_count = parameter_count;
  run.threads = block.x * block.y * block.z;
  run.abandoned = false;
  run.launch_epoch = ++run.epoch;
  run.longest = 0;
  emu_block_dim = block;
  emu_grid_dim = grid;
  statistics.launches++;
  const uint64_t wide = uint64_t(grid.x) * grid.y * grid.z * run.threads;
  statistics.widest = std::max(statistics.widest, wide);
  statistics.kernels[statement] = std::max(statistics.kernels[statement], wide);
  if (dry) { // only counted
    run.kernel = nullptr;
    return;
  }
  seed_random();
  ordering_begin_launch();
  run_grid(grid, shared_bytes);
  statistics.span += run.longest;
  settle_reads_beside_atomics();
  if (run.abandoned) take_back_stacks();
  run.epoch++;
  run.kernel = nullptr;
}

EMU_API cudaError_t emu_set_function_attribute(const void *, int attribute, int value) {
  using namespace emu;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > SHARED_MAX) return fail(cudaErrorInvalidValue);
  if (static_cast<size_t>(value) > dynamic_limit) dynamic_limit = static_cast<size_t>(value);
  return cudaSuccess;
}
