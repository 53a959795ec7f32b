#include "shadow.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include "block.h"
#include "config.h"
#include "fiber.h"
#include "memory.h"
#include "ordering.h"
#include "races.h"

alignas(1024) unsigned char emu_dynamic_shared[emu::SHARED_MAX];

namespace emu {

namespace {

// The last write and the last reads of four bytes, or of one. Epochs grow with every launch, block and barrier, so that
// comparing two says what lies between.
struct Cell {
  uint32_t write_epoch, read_epoch, write_pc, read_pc;
  uint32_t split; // 0, or one more than the place of four cells for a byte each, which then take this one's part
  uint16_t writer, reader;
  uint16_t write_sync, read_sync; // the warp's count of __syncwarp
  uint8_t write_flags, read_flags;
};
constexpr uint8_t ATOMIC = 16; // all of them were atomic or relaxed
constexpr uint8_t MANY_IN_WARP = 32, MANY_WARPS = 64, OTHER_BLOCKS = 128; // by whom else

enum class Space { device, shared, global };

// A stretch of memory with its cells; `state` holds per four bytes the addressable (low) and the written (high) bytes.
struct Region {
  char *base = nullptr;
  size_t size = 0;
  Cell *cells = nullptr;
  uint8_t *state = nullptr;
  Space space = Space::device;
  std::vector<std::array<Cell, 4>> split{}; // words that were accessed by parts

  bool contains(const void *p) const { return static_cast<size_t>(static_cast<const char *>(p) - base) < size; }
};
Region arena, static_shared, dynamic_shared, globals;
size_t dynamic_bytes_now = 0;

template <class T> T *reserve(size_t count) {
  void *at = mmap(nullptr, count * sizeof(T) + PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    perror("cudaperf emulator: cannot reserve address space for the checker");
    abort();
  }
  return static_cast<T *>(at);
}

void open_region(Region &region, char *base, size_t size, Space space) {
  region.base = base;
  region.size = size;
  region.space = space;
  region.cells = reserve<Cell>(size / 4 + 1);
  region.state = reserve<uint8_t>(size / 4 + 1);
}

void set_state(Region &region, const char *begin, size_t size, bool addressable, bool initialised) {
  uint8_t full = static_cast<uint8_t>((addressable ? 15 : 0) | (initialised ? 0xf0 : 0));
  size_t first = static_cast<size_t>(begin - region.base) / 4;
  memset(region.state + first, full, size / 4);
  if (size % 4) {
    unsigned bytes = (1u << (size % 4)) - 1;
    region.state[first + size / 4] = static_cast<uint8_t>((addressable ? bytes : 0) | (initialised ? bytes << 4 : 0));
  }
}

Region *region_of(const void *p) {
  if (arena.contains(p)) return &arena;
  if (static_shared.contains(p)) return &static_shared;
  if (dynamic_shared.contains(p)) return &dynamic_shared;
  if (globals.contains(p)) return &globals;
  return nullptr;
}

// Whether an earlier access, by another thread or block of this launch, is known to have come before this one.
bool ordered(const Earlier &e) {
  if (e.other_blocks || e.epoch < run.block_epoch) return ordering_released(e.epoch);
  if (e.epoch < run.epoch) return true; // a barrier lies between
  unsigned me = run.current->index;
  if (e.many_warps) return ordering_acquired(e.thread);
  if (!e.many && e.thread == me) return true;
  if (e.thread / 32 == me / 32 && e.sync < warp_epoch[me / 32]) return true;
  return ordering_acquired(e.thread);
}

void touch(Cell &c, const char *p, unsigned bytes, Access how, bool shared, Site site) {
  const uint32_t base = shared ? run.block_epoch : run.launch_epoch;
  const unsigned me = run.current->index;
  const bool writes = how == Access::write || how == Access::volatile_write || how == Access::atomic;
  const bool atomic = how == Access::atomic;
  // In global memory a volatile access is a relaxed atomic (PTX ISA, "Volatile Operations"), so two of them do not race;
  // in shared memory it is taken for a plain one, as it is used there in place of a missing __syncwarp.
  const bool relaxed = atomic || (!shared && (how == Access::volatile_read || how == Access::volatile_write));

  const Earlier written{true, c.write_epoch, c.write_pc, c.writer, c.write_sync, (c.write_flags & ATOMIC) != 0,
                        (c.write_flags & MANY_IN_WARP) != 0, (c.write_flags & MANY_WARPS) != 0,
                        (c.write_flags & OTHER_BLOCKS) != 0};
  const bool unordered_write = c.write_epoch >= base && !ordered(written);
  if (unordered_write && !(relaxed && written.atomic)) judge_race(written, {writes, atomic, p, bytes, site});
  if (writes) {
    if (atomic && c.read_epoch == run.epoch && c.reader == me) note_read_before_atomic(c.read_pc);
    if (c.read_epoch >= base && !(relaxed && (c.read_flags & ATOMIC))) {
      Earlier e{false, c.read_epoch, c.read_pc, c.reader, c.read_sync, false, (c.read_flags & MANY_IN_WARP) != 0,
                (c.read_flags & MANY_WARPS) != 0, (c.read_flags & OTHER_BLOCKS) != 0};
      if (!ordered(e)) judge_race(e, {true, atomic, p, bytes, site});
    }
    uint8_t flags = relaxed ? ATOMIC : 0;
    if (c.write_epoch == run.epoch && c.writer == me) { // one more of mine
      flags = static_cast<uint8_t>(((flags | c.write_flags) & ~ATOMIC) | (flags & c.write_flags & ATOMIC));
    } else if (unordered_write) { // atomics of several: remember that it was not one alone
      flags = static_cast<uint8_t>(flags | (c.write_flags & (MANY_IN_WARP | MANY_WARPS | OTHER_BLOCKS)));
      flags |= c.write_epoch < run.block_epoch ? OTHER_BLOCKS : c.writer / 32 != me / 32 ? MANY_WARPS : MANY_IN_WARP;
    }
    c.write_flags = flags;
    c.write_epoch = run.epoch;
    c.writer = static_cast<uint16_t>(me);
    c.write_sync = warp_epoch[me / 32];
    c.write_pc = pack(site);
    return;
  }
  uint8_t flags = relaxed ? ATOMIC : 0;
  if (c.read_epoch >= base) {
    flags |= c.read_flags & OTHER_BLOCKS;
    if (c.read_epoch < run.block_epoch) {
      flags |= OTHER_BLOCKS;
    } else if (c.read_epoch == run.epoch) {
      flags = static_cast<uint8_t>(flags | (c.read_flags & (MANY_IN_WARP | MANY_WARPS)));
      if (!(c.read_flags & ATOMIC)) flags &= static_cast<uint8_t>(~ATOMIC);
      if (c.reader != me && ordering_acquired(c.reader)) {
        flags = static_cast<uint8_t>((relaxed ? ATOMIC : 0) | (flags & OTHER_BLOCKS));
      } else if (c.reader != me) {
        if (c.reader / 32 != me / 32)
          flags |= MANY_WARPS;
        else if (c.read_sync < warp_epoch[me / 32])
          flags &= static_cast<uint8_t>(~MANY_IN_WARP);
        else
          flags |= MANY_IN_WARP;
      }
    }
  }
  c.read_flags = flags;
  c.read_epoch = run.epoch;
  c.reader = static_cast<uint16_t>(me);
  c.read_sync = warp_epoch[me / 32];
  c.read_pc = pack(site);
}

// An access of `bytes` bytes of a word, from its byte `first` on. Words that threads share by parts are kept by byte, lest
// one thread's byte be taken for its neighbour's.
void touch_word(Region &region, size_t word, unsigned first, unsigned bytes, Access how, Site site) {
  const bool shared = region.space == Space::shared;
  Cell &c = region.cells[word];
  const char *p = region.base + word * 4 + first;
  if (!c.split && bytes == 4) return touch(c, p, bytes, how, shared, site);
  if (!c.split) {
    region.split.push_back({c, c, c, c});
    c.split = static_cast<uint32_t>(region.split.size());
  }
  for (unsigned i = 0; i < bytes; i++) touch(region.split[c.split - 1][first + i], p + i, 1, how, shared, site);
}

// Whether the bytes of an access that were never written can be padding of a struct that is copied whole: they follow
// written ones, and end where a type that needs such a gap is aligned.
bool may_be_padding(const Region &region, const char *p, size_t size) {
  size_t at = static_cast<size_t>(p - region.base), gap = 0;
  for (size_t i = 0; i <= size; i++) {
    if (i < size && !((region.state[(at + i) / 4] >> (4 + (at + i) % 4)) & 1)) {
      gap++;
      continue;
    }
    const size_t alignment = gap < 2 ? 2 : gap < 4 ? 4 : 8;
    if (gap && (gap == i || gap >= 8 || size <= alignment || reinterpret_cast<uintptr_t>(p + i) % alignment)) return false;
    gap = 0;
  }
  return true;
}

void read_of_unwritten(const Region &region, const char *p, size_t size, const char *here, Site site) {
  const bool padding = may_be_padding(region, p, size);
  const char *kind = padding ? "uninit-copy" : "uninit-read";
  if (seen(kind, site)) return;
  report(kind, site, format("%s: read of %s, which was never written%s", where().c_str(), describe(here).c_str(),
                            padding ? " (most likely a struct's padding)" : ""),
         padding ? Severity::note : Severity::error);
}

void out_of_bounds(const char *p, size_t size, bool writes, Site site) {
  const Allocation *a = allocation_at(p);
  bool freed = a && !a->live;
  const char *kind = freed ? "use-after-free" : writes ? "oob-write" : "oob-read";
  if (!seen(kind, site))
    report(kind, site, format("%s: %s of %zu bytes at %s", where().c_str(), writes ? "write" : "read", size,
                              describe(p).c_str()));
}

bool is_parameter(const char *p, size_t size) {
  for (int i = 0; i < run.parameter_count; i++) {
    auto *begin = static_cast<const char *>(run.parameters[i].begin);
    if (p >= begin && p + size <= begin + run.parameters[i].size) return true;
  }
  return false;
}

// A kernel touches what is neither device memory nor its own stack: on a GPU the launch ends here.
void foreign_access(const char *p, size_t size, bool writes, Site site) {
  if (on_a_stack(p)) return;
  auto address = reinterpret_cast<uintptr_t>(p);
  if (module().contains(address) || is_runtime_data(p) || (!writes && is_parameter(p, size)))
    return; // constants, vtables, threadIdx, what a copy constructor reads
  const char *verb = writes ? "write" : "read";
  if (address < PAGE)
    report("null-pointer", site, format("%s: %s of %zu bytes through a null pointer", where().c_str(), verb, size));
  else if (!describe_shadowed(p).empty())
    return out_of_bounds(p, size, writes, site), abandon_launch(cudaErrorIllegalAddress);
  else
    report("host-pointer-in-kernel", site,
           format("%s: %s of %zu bytes at host address %p, which a kernel cannot reach", where().c_str(), verb, size,
                  static_cast<const void *>(p)));
  abandon_launch(cudaErrorIllegalAddress);
}

void host_access(const char *p, size_t size, bool writes, Site site) {
  if (!arena.contains(p)) return;
  const Allocation *a = allocation_at(p);
  if (a && a->kind == EMU_MANAGED && a->live) {
    if (writes) mark_initialised(p, size);
    return;
  }
  if (!seen("device-pointer-on-host", site))
    report("device-pointer-on-host", site,
           format("host code %s device memory directly: %s", writes ? "writes" : "reads", describe(p).c_str()));
}

} // namespace

void check_access(const void *address, size_t size, Access how, Site site, bool aligned) {
  if (!config.check) return; // a copy that the compiler made of a loop, in a module without instrumentation
  auto *p = static_cast<const char *>(address);
  const bool writes = how == Access::write || how == Access::volatile_write || how == Access::atomic;
  if (!run.current) return host_access(p, size, writes, site);
  settle_pending_write();
  Region *region = region_of(p);
  if (!region) return foreign_access(p, size, writes, site);
  const uint64_t moved = size <= 16 ? 1 : (size + 3) / 4; // what memcpy and memset touch, a word at a time
  statistics.accesses += moved;
  if (writes && how != Access::atomic && region == &arena) statistics.writes += moved;
  run.longest = std::max(run.longest, run.current->accesses += moved);
  if (how == Access::write || how == Access::volatile_write) run.activity++;
  if (aligned && size <= 16 && (size & (size - 1)) == 0 && reinterpret_cast<uintptr_t>(p) % size) {
    report("misaligned", site, format("%s: %s of %zu bytes at %s is not aligned to %zu bytes", where().c_str(),
                                      writes ? "write" : "read", size, describe(p).c_str(), size));
    abandon_launch(cudaErrorMisalignedAddress);
  }
  bool unwritten = false;
  size_t at = static_cast<size_t>(p - region->base), end = at + size;
  while (at < end) {
    size_t cell = at / 4;
    unsigned first = at % 4, bytes = static_cast<unsigned>(std::min<size_t>(4 - first, end - at));
    unsigned mask = ((1u << bytes) - 1) << first;
    const char *here = region->base + at;
    if (at >= region->size || (region->state[cell] & mask) != mask) {
      out_of_bounds(here, size, writes, site);
      if (region->space == Space::device && !in_used_arena(p)) abandon_launch(cudaErrorIllegalAddress);
      return;
    }
    uint8_t &state = region->state[cell];
    if ((!writes || how == Access::atomic) && ((state >> 4) & mask) != mask) {
      if (!unwritten) read_of_unwritten(*region, p, size, here, site);
      unwritten = true;
    }
    touch_word(*region, cell, first, bytes, how, site);
    if (writes) state = static_cast<uint8_t>(state | mask << 4);
    at += bytes;
  }
}

void shadow_arena(char *base, size_t size) {
  if (!config.check) return;
  open_region(arena, base, size, Space::device);
  open_region(dynamic_shared, reinterpret_cast<char *>(emu_dynamic_shared), sizeof emu_dynamic_shared, Space::shared);
}

void shadow_module(const Module &m) {
  if (!config.check) return;
  if (m.static_shared) open_region(static_shared, m.static_shared, m.static_shared_size, Space::shared);
  if (m.globals) {
    open_region(globals, m.globals, m.globals_size, Space::global);
    memset(globals.state, 0xff, globals.size / 4 + 1);
  }
}

void shadow_allocated(const char *begin, size_t size, bool initialised) {
  if (config.check) set_state(arena, begin, size, true, initialised);
}

void shadow_freed(const char *begin, size_t size) {
  if (config.check) set_state(arena, begin, size, false, false);
}

void shadow_forget(size_t bytes) {
  if (!config.check) return;
  const size_t cells = bytes / 4 * sizeof(Cell), pages = cells & ~(PAGE - 1);
  madvise(arena.cells, pages, MADV_DONTNEED);
  memset(reinterpret_cast<char *>(arena.cells) + pages, 0, cells - pages);
  arena.split.clear();
  memset(arena.state, 0, bytes / 4);
}

void begin_shared(size_t dynamic_bytes) {
  const Module &m = module();
  if (m.static_shared) memset(m.static_shared, 0xff, m.static_shared_size);
  memset(emu_dynamic_shared, 0xff, dynamic_bytes);
  if (!config.check) return;
  if (m.static_shared) memset(static_shared.state, 15, static_shared.size / 4);
  set_state(dynamic_shared, dynamic_shared.base, dynamic_bytes_now, false, false);
  set_state(dynamic_shared, dynamic_shared.base, dynamic_bytes, true, false);
  dynamic_bytes_now = dynamic_bytes;
}

void mark_initialised(const void *begin, size_t size) {
  if (!arena.contains(begin)) return;
  size_t at = static_cast<size_t>(static_cast<const char *>(begin) - arena.base);
  for (size_t end = at + size; at < end;) {
    unsigned first = at % 4, bytes = static_cast<unsigned>(std::min<size_t>(4 - first, end - at));
    arena.state[at / 4] = static_cast<uint8_t>(arena.state[at / 4] | (((1u << bytes) - 1) << first) << 4);
    at += bytes;
  }
}

static bool initialised(size_t at) { return (arena.state[at / 4] >> (4 + at % 4)) & 1; }

void copy_initialised(const void *to, const void *from, size_t size) {
  if (!arena.contains(to)) return;
  if (!arena.contains(from)) return mark_initialised(to, size);
  size_t t = static_cast<size_t>(static_cast<const char *>(to) - arena.base);
  size_t f = static_cast<size_t>(static_cast<const char *>(from) - arena.base);
  for (size_t i = 0; i < size; i++) {
    unsigned bit = 16u << ((t + i) % 4);
    uint8_t &state = arena.state[(t + i) / 4];
    state = static_cast<uint8_t>(initialised(f + i) ? state | bit : state & ~bit);
  }
}

Uninitialised uninitialised_in(const void *begin, size_t size) {
  Uninitialised found;
  if (!arena.contains(begin)) return found;
  size_t at = static_cast<size_t>(static_cast<const char *>(begin) - arena.base), length = 0;
  for (size_t i = 0; i < size; i++) {
    if (initialised(at + i)) {
      length = 0;
      continue;
    }
    if (!found.bytes++) found.first = i;
    found.longest = std::max(found.longest, ++length);
  }
  return found;
}

std::string describe_shadowed(const void *address) {
  auto *p = static_cast<const char *>(address);
  const Module &m = module();
  auto *dynamic = reinterpret_cast<const char *>(emu_dynamic_shared);
  if (m.static_shared && p >= m.static_shared && p < m.static_shared + m.static_shared_size)
    return "__shared__ " + symbol_at(p);
  if (p >= dynamic && p < dynamic + SHARED_MAX) {
    if (p < dynamic + dynamic_bytes_now)
      return format("byte %zu of dynamic shared memory", static_cast<size_t>(p - dynamic));
    return format("%zu bytes past the end of dynamic shared memory (%zu bytes)",
                  static_cast<size_t>(p - dynamic) - dynamic_bytes_now, dynamic_bytes_now);
  }
  if (m.globals && p >= m.globals && p < m.globals + m.globals_size) return "the variable " + symbol_at(p);
  if (m.static_shared && p >= m.static_shared - GAP && p < m.static_shared + m.static_shared_size + GAP)
    return "an address just outside static shared memory";
  return "";
}

} // namespace emu
