#include "ordering.h"

#include <algorithm>
#include <bitset>
#include <unordered_map>
#include <vector>

#include "block.h"
#include "config.h"

namespace emu {

namespace {

struct Release {
  uint32_t block;  // index in block_starts
  uint32_t epoch;  // up to which its accesses are released
  uint16_t thread;
};

struct Location {
  std::vector<Release> releases;
};

std::unordered_map<uintptr_t, Location> locations;      // atomics that released something in this launch
std::vector<uint32_t> block_starts;                     // first epoch of every block of this launch
std::unordered_map<uint32_t, uint32_t> visible;         // block -> epoch, for the present block
bool block_fenced = false;

struct Acquired {
  uint32_t epoch = 0;
  std::bitset<MAX_THREADS> threads;
};
std::vector<Acquired> acquired(MAX_THREADS);

} // namespace

void ordering_begin_launch() {
  locations.clear();
  block_starts.clear();
}

void ordering_begin_block() {
  block_starts.push_back(run.block_epoch);
  visible.clear();
  block_fenced = false;
}

void ordering_fence(bool whole_device) {
  run.current->fenced = true;
  if (whole_device) block_fenced = true;
}

void ordering_atomic(const void *address) {
  if (!block_fenced && !run.current->fenced && locations.empty()) return;
  const uint32_t block = static_cast<uint32_t>(block_starts.size()) - 1;
  const unsigned me = run.current->index;
  auto it = locations.find(reinterpret_cast<uintptr_t>(address));
  if (it != locations.end()) {
    Acquired &mine = acquired[me];
    if (mine.epoch != run.epoch) {
      mine.epoch = run.epoch;
      mine.threads.reset();
    }
    for (const Release &r : it->second.releases) {
      if (r.block != block) {
        uint32_t &epoch = visible[r.block];
        epoch = std::max(epoch, r.epoch);
      } else if (r.epoch == run.epoch) {
        mine.threads.set(r.thread);
      }
    }
  }
  if (block_fenced || run.current->fenced)
    locations[reinterpret_cast<uintptr_t>(address)].releases.push_back(
        {block, run.epoch, static_cast<uint16_t>(me)});
}

bool ordering_released(uint32_t epoch) {
  if (visible.empty()) return false;
  if (epoch >= run.block_epoch) epoch = run.block_epoch - 1;
  auto after = std::upper_bound(block_starts.begin(), block_starts.end(), epoch);
  if (after == block_starts.begin()) return false;
  auto it = visible.find(static_cast<uint32_t>(after - block_starts.begin()) - 1);
  return it != visible.end() && it->second >= epoch;
}

bool ordering_acquired(unsigned thread) {
  const Acquired &mine = acquired[run.current->index];
  return mine.epoch == run.epoch && mine.threads.test(thread);
}

} // namespace emu
