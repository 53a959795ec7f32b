#include "memory.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <sys/mman.h>
#include <vector>

#include "config.h"
#include "errors.h"
#include "faults.h"
#include "module.h"
#include "shadow.h"

namespace emu {

namespace {

char *arena = nullptr;
size_t used = 0;
size_t in_use = 0;
int next_number = 1;
std::map<const char *, Allocation> allocations;
std::vector<const char *> fresh; // made since the last report: candidates for a leak

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

std::string named(const Allocation &a) {
  const char *what = a.kind == EMU_PINNED ? "pinned host" : a.kind == EMU_MANAGED ? "managed" : "device";
  return format("%s allocation #%d (%zu bytes)", what, a.number, a.size);
}

// All is freed and much is used: start again, so that a long series of calls does not run out.
void recycle() {
  if (used < ARENA_BYTES / 2) return;
  for (const auto &entry : allocations)
    if (entry.second.live && entry.second.kind != EMU_PINNED) return;
  madvise(arena, used + GAP, MADV_DONTNEED);
  shadow_forget(used + GAP);
  for (auto it = allocations.begin(); it != allocations.end();)
    it = it->second.kind == EMU_PINNED ? std::next(it) : allocations.erase(it);
  used = 0;
}

} // namespace

void open_arena() {
  if (arena) return;
  watch_faults();
  void *at = mmap(nullptr, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    perror("cudaperf emulator: cannot reserve address space for device memory");
    abort();
  }
  arena = static_cast<char *>(at);
  shadow_arena(arena, ARENA_BYTES);
}

bool in_arena(const void *address) {
  return arena && address >= arena && address < arena + ARENA_BYTES;
}

bool in_used_arena(const void *address) {
  return arena && address >= arena && address < arena + used + GAP;
}

const Allocation *allocation_at(const void *address) {
  auto it = allocations.upper_bound(static_cast<const char *>(address));
  if (it == allocations.begin()) return nullptr;
  const Allocation &a = std::prev(it)->second;
  return address < a.end() ? &a : nullptr;
}

std::string describe(const void *address) {
  auto *at = static_cast<const char *>(address);
  if (const Allocation *a = allocation_at(at))
    return format("byte %zu of %s%s", static_cast<size_t>(at - a->begin), named(*a).c_str(),
                  a->live ? "" : ", which has been freed");
  std::string shared = describe_shadowed(address);
  if (!shared.empty()) return shared;
  if (!in_arena(at)) return format("address %p", address);
  auto above = allocations.upper_bound(at);
  const Allocation *before = above == allocations.begin() ? nullptr : &std::prev(above)->second;
  const Allocation *after = above == allocations.end() ? nullptr : &above->second;
  if (before && (!in_arena(before->begin))) before = nullptr;
  if (after && (!in_arena(after->begin))) after = nullptr;
  if (before && (!after || at - before->end() <= after->begin - at))
    return format("%zu bytes past the end of %s", static_cast<size_t>(at - before->end()), named(*before).c_str());
  if (after) return format("%zu bytes before %s", static_cast<size_t>(after->begin - at), named(*after).c_str());
  return format("address %p, which was never allocated", address);
}

cudaError_t allocate(void **pointer, size_t size, emu_memory kind, Site site) {
  open_arena();
  if (!pointer) return fail(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (!size) return cudaSuccess;
  if (kind == EMU_PINNED) {
    *pointer = malloc(size);
    if (!*pointer) return fail(cudaErrorMemoryAllocation);
    char *begin = static_cast<char *>(*pointer);
    allocations[begin] = {begin, size, kind, true, next_number++, site};
    fresh.push_back(begin);
    return cudaSuccess;
  }
  recycle();
  if (size > ARENA_BYTES) return fail(cudaErrorMemoryAllocation);
  size_t body = round_up(size, config.check ? 256 : 16), span = round_up(body, PAGE);
  if (used + span + 2 * GAP > ARENA_BYTES) {
    report("memory", site, "the emulator's 8 GiB of device memory are used up", Severity::unsupported);
    return fail(cudaErrorMemoryAllocation);
  }
  char *first = arena + used + GAP;
  // Checked: gaps can be touched, the checker reports it. Unchecked: the allocation ends where a guard page begins.
  if (config.check)
    mprotect(first - GAP, span + 2 * GAP, PROT_READ | PROT_WRITE);
  else
    mprotect(first, span, PROT_READ | PROT_WRITE);
  used += GAP + span;
  char *begin = config.check ? first : first + span - body;
  if (kind != EMU_MANAGED) memset(begin, 0xff, size); // poison: NaN as a float, -1 as an integer
  allocations[begin] = {begin, size, kind, true, next_number++, site};
  fresh.push_back(begin);
  in_use += size;
  shadow_allocated(begin, size, kind == EMU_MANAGED);
  *pointer = begin;
  return cudaSuccess;
}

cudaError_t release(void *pointer, bool host, Site site) {
  if (!pointer) return cudaSuccess;
  auto it = allocations.find(static_cast<char *>(pointer));
  const char *call = host ? "cudaFreeHost" : "cudaFree";
  if (it == allocations.end() || !it->second.live) {
    const Allocation *inside = allocation_at(pointer);
    std::string message = it != allocations.end() ? format("%s: %s is freed twice", call, named(it->second).c_str())
                          : inside               ? format("%s: not the start of %s", call, named(*inside).c_str())
                                                 : format("%s: not a pointer of cudaMalloc", call);
    report("bad-free", site, message);
    return fail(cudaErrorInvalidValue);
  }
  Allocation &a = it->second;
  if (host != (a.kind == EMU_PINNED)) {
    report("bad-free", site, format("%s of a %s", call, named(a).c_str()));
    return fail(cudaErrorInvalidValue);
  }
  if (a.kind == EMU_PINNED) {
    free(pointer);
    allocations.erase(it);
    return cudaSuccess;
  }
  a.live = false;
  in_use -= a.size;
  shadow_freed(a.begin, a.size);
  char *first = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(a.begin) & ~(PAGE - 1));
  size_t span = round_up(static_cast<size_t>(a.end() - first), PAGE);
  madvise(first, span, MADV_DONTNEED);
  if (!config.check) mprotect(first, span, PROT_NONE);
  return cudaSuccess;
}

size_t bytes_in_use() { return in_use; }

void report_leaks() {
  for (const char *begin : fresh) {
    auto it = allocations.find(begin);
    if (it != allocations.end() && it->second.live)
      report("leak", it->second.site, named(it->second) + " is not freed by the end of the call", Severity::note);
  }
  fresh.clear();
}

} // namespace emu
