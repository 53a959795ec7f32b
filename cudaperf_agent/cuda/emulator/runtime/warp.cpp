// Warp operations: lanes wait until all lanes of their mask are there (or have exited), then all get their results.
#include <algorithm>
#include <climits>

#include "block.h"
#include "report.h"

namespace emu {

namespace {

struct Gathered { // over the lanes present
  unsigned lanes = 0, ballot = 0;
  uint32_t sum = 0, all = ~0u, any = 0, odd = 0, least = ~0u, most = 0;
  int32_t signed_least = INT_MAX, signed_most = INT_MIN;
  bool same = true;
};

Gathered gather(unsigned first, unsigned lanes) {
  Gathered g;
  g.lanes = lanes;
  const Thread *one = nullptr;
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(lanes >> lane & 1)) continue;
    const Thread &t = threads[first + lane];
    auto v = static_cast<uint32_t>(t.value);
    if (v) g.ballot |= 1u << lane;
    g.sum += v;
    g.all &= v;
    g.any |= v;
    g.odd ^= v;
    g.least = std::min(g.least, v);
    g.most = std::max(g.most, v);
    g.signed_least = std::min(g.signed_least, static_cast<int32_t>(v));
    g.signed_most = std::max(g.signed_most, static_cast<int32_t>(v));
    if (one && one->value != t.value) g.same = false;
    if (!one) one = &t;
  }
  return g;
}

// The lane that a shuffle reads; its own where CUDA says that the value stays.
int source_lane(const Thread &t, int lane) {
  int base = lane & ~(t.width - 1), inside = lane & (t.width - 1);
  switch (t.operation) {
  case EMU_SHFL: return base + (t.argument & (t.width - 1));
  case EMU_SHFL_UP: return inside - t.argument >= 0 ? lane - t.argument : lane;
  case EMU_SHFL_DOWN: return t.argument < t.width - inside ? lane + t.argument : lane;
  default: return (lane ^ t.argument) < base + t.width ? lane ^ t.argument : lane; // xor
  }
}

uint64_t shuffled(const Thread &t, unsigned first, const Gathered &g) {
  int lane = t.index % 32, source = source_lane(t, lane);
  if (source == lane) return t.value;
  if (source >= 0 && source < 32 && g.lanes >> source & 1) return threads[first + static_cast<unsigned>(source)].value;
  if (!seen("shuffle-inactive-lane", Site{0, t.line}))
    report("shuffle-inactive-lane", Site{0, t.line},
           format("kernel %s: lane %d reads from lane %d, which is not in the mask or has exited", run.kernel, lane,
                  source));
  return ~uint64_t(0);
}

uint64_t result(const Thread &t, unsigned first, const Gathered &g) {
  switch (t.operation) {
  case EMU_SHFL:
  case EMU_SHFL_UP:
  case EMU_SHFL_DOWN:
  case EMU_SHFL_XOR: return shuffled(t, first, g);
  case EMU_BALLOT: return g.ballot;
  case EMU_MATCH_ALL: return g.same ? g.lanes : 0;
  case EMU_MATCH_ANY: {
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; lane++)
      if ((g.lanes >> lane & 1) && threads[first + lane].value == t.value) same |= 1u << lane;
    return same;
  }
  case EMU_ADD: return g.sum;
  case EMU_MIN: return static_cast<uint32_t>(g.signed_least);
  case EMU_MAX: return static_cast<uint32_t>(g.signed_most);
  case EMU_UMIN: return g.least;
  case EMU_UMAX: return g.most;
  case EMU_AND: return g.all;
  case EMU_OR: return g.any;
  case EMU_XOR: return g.odd;
  default: return 0; // EMU_SYNC
  }
}

} // namespace

bool complete_warp(unsigned warp, unsigned mask) {
  const unsigned first = warp * 32, size = std::min(run.threads - first, 32u);
  unsigned present = 0;
  for (unsigned lane = 0; lane < size; lane++) {
    if (!(mask >> lane & 1)) continue;
    const Thread &t = threads[first + lane];
    if (t.state == State::in_warp_operation && t.operation != EMU_ACTIVE && t.mask == mask)
      present |= 1u << lane;
    else if (t.state != State::done)
      return false;
  }
  if (!present) return false;
  const Gathered g = gather(first, present);
  const Thread *reference = nullptr;
  uint64_t results[32];
  for (unsigned lane = 0; lane < size; lane++) {
    if (!(present >> lane & 1)) continue;
    const Thread &t = threads[first + lane];
    if (!reference) reference = &t;
    if (t.operation != reference->operation && !seen("warp-divergence", Site{0, t.line}))
      report("warp-divergence", Site{0, t.line},
             format("kernel %s: lane %u is in this warp operation while lane %u of the same mask is in another one, of "
                    "line %d",
                    run.kernel, lane, reference->index % 32u, reference->line),
             Severity::error, Site{0, reference->line});
    results[lane] = result(t, first, g);
  }
  if (reference->operation == EMU_SYNC) warp_epoch[warp]++;
  for (unsigned lane = 0; lane < size; lane++)
    if (present >> lane & 1) {
      threads[first + lane].result = results[lane];
      threads[first + lane].state = State::ready;
    }
  run.activity++;
  return true;
}

// The lanes of a warp that have come to the same __activemask() are active together. All that can come are awaited, so
// that a warp is as converged as hardware keeps it; what is certain is only that a lane is active itself.
bool complete_active_mask(unsigned warp, int line, bool all) {
  const unsigned first = warp * 32, size = std::min(run.threads - first, 32u);
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < size; lane++) {
    const Thread &t = threads[first + lane];
    if (t.state == State::in_warp_operation && t.operation == EMU_ACTIVE && t.line == line)
      lanes |= 1u << lane;
    else if (all && t.state != State::done)
      return false;
  }
  for (unsigned lane = 0; lane < size; lane++)
    if (lanes >> lane & 1) {
      threads[first + lane].result = lanes;
      threads[first + lane].state = State::ready;
    }
  return true;
}

} // namespace emu

EMU_API uint64_t emu_warp(int operation, unsigned mask, uint64_t value, int argument, int width, int line) {
  using namespace emu;
  if (!run.current) return value;
  Thread &t = *run.current;
  if (!(mask >> (t.index % 32) & 1)) {
    if (!seen("warp-mask", Site{0, line}))
      report("warp-mask", Site{0, line},
             format("%s: calls a warp operation with mask 0x%08x, which does not name its own lane %u",
                    where().c_str(), mask, t.index % 32u));
    return value;
  }
  if (width < 1 || width > 32 || (width & (width - 1))) {
    if (!seen("warp-mask", Site{0, line}, 1))
      report("warp-mask", Site{0, line}, format("%s: a shuffle's width must be 1, 2, 4, 8, 16 or 32, not %d",
                                                where().c_str(), width), Severity::error, {}, 1);
    return value;
  }
  t.operation = operation;
  t.mask = mask;
  t.value = value;
  t.argument = argument;
  t.width = width;
  t.line = line;
  t.state = State::in_warp_operation;
  if (!complete_warp(t.index / 32u, mask)) wait_here();
  return t.result;
}

EMU_API unsigned emu_active_mask(int line) {
  using namespace emu;
  if (!run.current) return 1;
  Thread &t = *run.current;
  t.operation = EMU_ACTIVE;
  t.mask = 0;
  t.line = line;
  t.state = State::in_warp_operation;
  if (!complete_active_mask(t.index / 32u, line, true)) wait_here();
  return static_cast<unsigned>(t.result);
}
