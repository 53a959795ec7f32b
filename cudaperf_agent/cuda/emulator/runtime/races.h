// Unordered accesses of the same bytes: which of them are errors. Some can be judged only once more has happened.
#pragma once
#include <cstdint>

#include "report.h"

namespace emu {

// What a cell remembers of the access before.
struct Earlier {
  bool write;
  uint32_t epoch, pc;
  uint16_t thread, sync;
  bool atomic, many, many_warps, other_blocks;
};
// The access at hand.
struct Present {
  bool writes, atomic;
  const char *address;
  unsigned bytes;
  Site site;
};

// Two accesses that nothing orders, at least one of them a write.
void judge_race(const Earlier &earlier, const Present &present);

// A write over another write is judged once it has happened: writing the value already there harms nobody.
void settle_pending_write();

// A thread's plain read was followed by its atomic on the same address: the first half of a compare-and-swap loop, or a
// check before an atomic. `read_pc` is the read's place; reads there may run beside atomics of others.
void note_read_before_atomic(uint32_t read_pc);
// At the end of a launch: reads beside atomics whose place was never noted are errors.
void settle_reads_beside_atomics();

// A site as cells keep it: an offset into the module's code, or a line with the top bit set.
uint32_t pack(Site site);
Site unpack(uint32_t packed);

} // namespace emu
