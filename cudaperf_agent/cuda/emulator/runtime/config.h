// Sizes and settings of the runtime. Settings come from the environment, read once at the first use.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emu {

constexpr size_t PAGE = 4096;
constexpr size_t ARENA_BYTES = size_t(8) << 30;  // device memory that can be handed out over one call
constexpr size_t GAP = 64 << 10;                 // unaddressable bytes between allocations
constexpr size_t STACK_BYTES = 256 << 10;        // of one CUDA thread
constexpr unsigned MAX_THREADS = 1024;           // per block
constexpr size_t SHARED_DEFAULT = 48 << 10;      // dynamic shared memory without an attribute
constexpr size_t SHARED_MAX = 227 << 10;         // and with one (sm_90)
constexpr size_t MAX_FINDINGS = 100;             // distinct findings kept per report
constexpr unsigned SPINS_BEFORE_YIELD = 16;      // unchanged atomics or volatile reads before others get a turn
constexpr uint64_t SPINS_BEFORE_GIVING_UP = 2'000'000; // of a whole block without anything else happening

enum class Order { forward, reverse, random };

struct Config {
  bool check = false; // the module is instrumented; set when it registers
  Order order = Order::forward;
  uint64_t seed = 0;
  const char *suppress = nullptr; // "kernel@line" whose launches are left out; "*" leaves out all, but counts them
};
extern Config config;
void read_environment();

} // namespace emu
