#include "races.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "block.h"
#include "memory.h"
#include "module.h"

namespace emu {

namespace {

struct Found {
  Site site, other;
  std::string message;
  int variant = 0;
  uint64_t count = 1;
};

// What an access is about to write over others' writes: all of its words, since one alone may stay the same.
struct Overwritten {
  const char *address;
  unsigned bytes;
  unsigned char before[4];
};
std::vector<Overwritten> pending;
Found pending_finding;

// By the place of the plain read, then by the finding's own key.
std::map<uint32_t, std::map<std::tuple<uintptr_t, int, int>, Found>> beside_atomics;
std::set<uint32_t> before_atomics;

std::string describe_race(const Earlier &earlier, const Present &present, bool across_blocks) {
  std::string who = across_blocks                            ? "another block"
                    : earlier.many || earlier.many_warps ? "other threads of the block"
                                                         : format("thread %u of the block", earlier.thread);
  return format("%s: %s%s of %s races with %s%s by %s; nothing orders the two", where().c_str(),
                present.atomic ? "atomic " : "", present.writes ? "write" : "read", describe(present.address).c_str(),
                earlier.atomic ? "an atomic " : "a ", earlier.write ? "write" : "read", who.c_str());
}

} // namespace

constexpr uint32_t IS_LINE = 0x80000000u;

uint32_t pack(Site site) {
  if (site.line) return IS_LINE | static_cast<uint32_t>(site.line);
  return module().contains(site.pc) ? static_cast<uint32_t>(site.pc - module().base) : 0;
}

Site unpack(uint32_t packed) {
  if (packed & IS_LINE) return Site{0, static_cast<int>(packed & ~IS_LINE)};
  return packed ? Site{module().base + packed, 0} : Site{};
}

void judge_race(const Earlier &earlier, const Present &present) {
  const bool across_blocks = earlier.other_blocks || earlier.epoch < run.block_epoch;
  const int variant = (across_blocks ? 1 : 0) | (present.writes ? 2 : 0) | (earlier.write ? 4 : 0);
  const Site site = present.site;
  if (seen("race", site, variant)) return;

  const bool reads_beside_atomic = present.writes ? present.atomic && !earlier.write : earlier.atomic;
  if (reads_beside_atomic) {
    const uint32_t read = present.writes ? earlier.pc : pack(site);
    auto [it, fresh] = beside_atomics[read].try_emplace({site.pc, site.line, variant});
    if (fresh)
      it->second = {site, unpack(earlier.pc), describe_race(earlier, present, across_blocks), variant, 1};
    else
      it->second.count++;
    return;
  }
  Found found{site, unpack(earlier.pc), describe_race(earlier, present, across_blocks), variant, 1};
  if (present.writes && earlier.write && !present.atomic && !earlier.atomic) {
    Overwritten &word = pending.emplace_back(Overwritten{present.address, present.bytes, {}});
    memcpy(word.before, present.address, present.bytes);
    if (pending.size() == 1) pending_finding = std::move(found);
    return;
  }
  report("race", site, found.message, Severity::error, found.other, variant);
}

void settle_pending_write() {
  if (pending.empty()) return;
  const Found &f = pending_finding;
  if (std::all_of(pending.begin(), pending.end(),
                  [](const Overwritten &w) { return memcmp(w.address, w.before, w.bytes) == 0; }))
    report("race-same-value", f.site, f.message + " (both write the same value)", Severity::note, f.other, f.variant);
  else
    report("race", f.site, f.message, Severity::error, f.other, f.variant);
  pending.clear();
}

void note_read_before_atomic(uint32_t read_pc) {
  static uint32_t last = 0;
  if (read_pc == last) return;
  last = read_pc;
  before_atomics.insert(read_pc);
}

void settle_reads_beside_atomics() {
  for (const auto &[read, findings] : beside_atomics)
    for (const auto &[key, f] : findings) {
      const bool harmless = before_atomics.count(read) != 0;
      report(harmless ? "race-with-atomic" : "race", f.site, f.message,
             harmless ? Severity::note : Severity::error, f.other, f.variant, f.count);
    }
  beside_atomics.clear();
}

} // namespace emu
