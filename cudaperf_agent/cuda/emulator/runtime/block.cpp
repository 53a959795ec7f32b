#include "block.h"

#include <algorithm>
#include <cstring>

#include "config.h"
#include "errors.h"
#include "fiber.h"
#include "memory.h"
#include "ordering.h"
#include "report.h"
#include "shadow.h"

extern "C" uint3 emu_block_index;
extern "C" dim3 emu_block_dim;

namespace emu {

Run run;
Thread threads[MAX_THREADS];
uint16_t warp_epoch[MAX_THREADS / 32];

namespace {

unsigned waiting = 0, finished = 0;
int votes[3];
uint64_t random_state = 1;
uint64_t activity_seen = 0, spins_without_activity = 0;

void start_threads(unsigned *order) {
  for (unsigned i = 0; i < run.threads; i++) {
    Thread &t = threads[i];
    t.state = State::fresh;
    t.index = static_cast<uint16_t>(i);
    t.fenced = false;
    t.spins = 0;
    t.accesses = 0;
    t.position = {i % emu_block_dim.x, i / emu_block_dim.x % emu_block_dim.y,
                  i / (emu_block_dim.x * emu_block_dim.y)};
    order[i] = config.order == Order::reverse ? run.threads - 1 - i : i;
  }
}

void shuffle(unsigned *order) {
  for (unsigned i = run.threads - 1; i > 0; i--) std::swap(order[i], order[random_number() % (i + 1)]);
}

// All threads that have not exited wait at a barrier: judge it and let them on.
void complete_barrier() {
  int first_line = 0, other_line = 0, count = 0;
  for (unsigned i = 0; i < run.threads; i++) {
    const Thread &t = threads[i];
    if (t.state != State::at_barrier) continue;
    if (!first_line) first_line = t.line;
    if (t.line != first_line) other_line = t.line;
    count += t.predicate != 0;
  }
  if (other_line && !seen("barrier-divergence", Site{0, other_line}))
    report("barrier-divergence", Site{0, other_line},
           format("kernel %s: some threads of a block wait at this barrier, others at the one of line %d", run.kernel,
                  first_line),
           Severity::error, Site{0, first_line});
  if (finished && !seen("barrier-divergence", Site{0, first_line}))
    report("barrier-divergence", Site{0, first_line},
           format("kernel %s: %u of %u threads of the block ended without reaching this barrier, where the others wait",
                  run.kernel, finished, run.threads));
  votes[EMU_COUNT] = count;
  votes[EMU_ALL] = count == static_cast<int>(waiting);
  votes[EMU_ANY] = count > 0;
  waiting = 0;
  run.epoch++;
  run.activity++;
  memset(warp_epoch, 0, sizeof warp_epoch);
  for (unsigned i = 0; i < run.threads; i++)
    if (threads[i].state == State::at_barrier) threads[i].state = State::ready;
}

// Nobody can run and neither a barrier nor a warp operation is complete.
void report_deadlock() {
  for (unsigned i = 0; i < run.threads; i++) {
    const Thread &t = threads[i];
    if (t.state != State::in_warp_operation) continue;
    unsigned there = 0;
    for (unsigned j = i / 32 * 32; j < std::min(run.threads, i / 32 * 32 + 32); j++)
      if (threads[j].state == State::in_warp_operation && threads[j].mask == t.mask) there |= 1u << (j % 32);
    report("deadlock", Site{0, t.line},
           format("kernel %s: thread %u waits in a warp operation with mask 0x%08x, but lanes 0x%08x of that mask never "
                  "arrive with it (%u threads wait at a barrier)",
                  run.kernel, i, t.mask, t.mask & ~there, waiting));
    break;
  }
  run.abandoned = true;
  fail_for_good(cudaErrorLaunchTimeout);
}

// One step for a block in which no thread could run; false if it is stuck.
bool release_waiting() {
  for (unsigned i = 0; i < run.threads; i++)
    if (threads[i].state == State::in_warp_operation && threads[i].operation != EMU_ACTIVE &&
        complete_warp(i / 32, threads[i].mask))
      return true;
  for (unsigned i = 0; i < run.threads; i++)
    if (threads[i].state == State::in_warp_operation && threads[i].operation == EMU_ACTIVE)
      return complete_active_mask(i / 32, threads[i].line, false);
  if (waiting && waiting + finished == run.threads) {
    complete_barrier();
    return true;
  }
  return false;
}

} // namespace

void seed_random() { random_state = 88172645463325252ull + config.seed * 0x9E3779B97F4A7C15ull; }

uint32_t random_number() { // xorshift64 (Marsaglia 2003)
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return static_cast<uint32_t>(random_state >> 16);
}

void run_block() {
  static unsigned order[MAX_THREADS];
  run.block_epoch = ++run.epoch;
  ordering_begin_block();
  waiting = finished = 0;
  activity_seen = spins_without_activity = 0;
  memset(warp_epoch, 0, sizeof warp_epoch);
  start_threads(order);
  while (finished < run.threads && !run.abandoned) {
    if (config.order == Order::random) shuffle(order);
    bool progress = false;
    for (unsigned i = 0; i < run.threads && !run.abandoned; i++) {
      Thread &t = threads[order[i]];
      if (t.state != State::fresh && t.state != State::ready) continue;
      progress = true;
      resume(t);
      if (t.state == State::done) {
        finished++;
        run.activity++;
      }
    }
    if (!progress && !run.abandoned && !release_waiting()) report_deadlock();
  }
}

void wait_here() { switch_to_scheduler(*run.current); }

void abandon_launch(cudaError_t error) {
  run.abandoned = true;
  fail_for_good(error);
  wait_here();
  __builtin_unreachable();
}

void spin(Site site) {
  if (run.activity != activity_seen) {
    activity_seen = run.activity;
    spins_without_activity = 0;
  }
  if (++spins_without_activity > SPINS_BEFORE_GIVING_UP) {
    report("spin-wait", site,
           format("kernel %s: the block only waits for something that another block would have to do; blocks run one "
                  "after another here",
                  run.kernel),
           Severity::unsupported);
    abandon_launch(cudaErrorLaunchTimeout);
  }
  if (++run.current->spins % SPINS_BEFORE_YIELD == 0) wait_here();
}

std::string where() {
  if (!run.current) return "host code";
  const uint3 &t = run.current->position;
  return format("kernel %s, block (%u,%u,%u), thread (%u,%u,%u)", run.kernel ? run.kernel : "?", emu_block_index.x,
                emu_block_index.y, emu_block_index.z, t.x, t.y, t.z);
}

} // namespace emu

EMU_API void emu_barrier(int line) {
  using namespace emu;
  if (!run.current) return;
  run.current->line = line;
  run.current->predicate = 0;
  run.current->state = State::at_barrier;
  waiting++;
  wait_here();
}

EMU_API int emu_barrier_vote_on(int vote, int predicate, int line) {
  using namespace emu;
  if (!run.current) return predicate != 0;
  run.current->line = line;
  run.current->predicate = predicate;
  run.current->state = State::at_barrier;
  waiting++;
  wait_here();
  return votes[vote];
}

EMU_API void emu_fence(int whole_device) {
  if (emu::run.current) emu::ordering_fence(whole_device != 0);
}

EMU_API void emu_atomic_unchanged(int line) {
  if (!emu::run.current) return;
  emu::run.activity--; // what emu_atomic counted
  emu::spin(emu::Site{0, line});
}

EMU_API void emu_nanosleep(int line) {
  using namespace emu;
  if (!run.current) return;
  run.current->spins = SPINS_BEFORE_YIELD - 1;
  spin(Site{0, line});
}

EMU_API void emu_trap(int line) {
  using namespace emu;
  if (!run.current) abort();
  report("trap", Site{0, line}, where() + ": __trap() ends the kernel");
  abandon_launch(cudaErrorLaunchFailure);
}

EMU_API void emu_unsupported(const char *what, int line) {
  using namespace emu;
  report("unsupported", Site{0, line}, format("the emulator does not have %s", what), Severity::unsupported);
  if (run.current) abandon_launch(cudaErrorNotSupported);
}
