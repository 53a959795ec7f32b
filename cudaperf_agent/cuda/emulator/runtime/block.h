// One block: its threads as fibers, the scheduler that runs them, its barriers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "../include/emu/abi.h"
#include "config.h"
#include "report.h"

namespace emu {

enum class State : uint8_t { fresh, ready, at_barrier, in_warp_operation, done };

struct Thread {
  void *stack_pointer;
  int stack;
  State state;
  uint16_t index; // linear, within the block
  uint3 position;
  int line;       // of the barrier or warp operation it waits in
  bool fenced;
  unsigned spins;
  uint64_t accesses; // of memory that the checker knows
  int predicate;  // of a barrier that votes
  int operation, argument, width; // of a warp operation
  unsigned mask;
  uint64_t value, result;
};

// The launch under way.
struct Run {
  const char *kernel = nullptr;
  void (*body)(void *) = nullptr;
  void *context = nullptr;
  const emu_range *parameters = nullptr; // the arguments, on the host
  int parameter_count = 0;
  unsigned threads = 0;
  Thread *current = nullptr; // null in host code
  bool abandoned = false;
  uint32_t epoch = 1, launch_epoch = 1, block_epoch = 1;
  uint64_t longest = 0;  // accesses of the thread that has made most
  uint64_t activity = 0; // grows with writes and with threads that get somewhere; a spin-wait leaves it alone
};
extern Run run;
extern Thread threads[MAX_THREADS];
extern uint16_t warp_epoch[MAX_THREADS / 32]; // completed __syncwarp calls since the last barrier

void run_block();
// Leaves the running fiber until the scheduler resumes it.
void wait_here();
// Ends the launch from inside a kernel, as a GPU does after a fault. Does not return.
[[noreturn]] void abandon_launch(cudaError_t error);
// Lets the other threads of the block run; gives up on a block in which everybody only waits.
void spin(Site site);
// Completes the warp operation of a warp whose lanes of `mask` have all arrived (or exited).
bool complete_warp(unsigned warp, unsigned mask);
// The same for __activemask(): with `all`, only if every lane that has not exited is there.
bool complete_active_mask(unsigned warp, int line, bool all);

// "kernel scale, block (0,0,0), thread (5,0,0)".
std::string where();
// Pseudo-random numbers that depend on the seed alone.
void seed_random();
uint32_t random_number();

} // namespace emu
