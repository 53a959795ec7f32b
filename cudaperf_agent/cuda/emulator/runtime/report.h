// Findings: what was seen, where, how often; written as JSON for the parent process.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace emu {

enum class Severity { error, note, unsupported };

// Where in the candidate: an address in its code, or a line if the header passed one.
struct Site {
  uintptr_t pc = 0;
  int line = 0;
};

// Counts a finding already there and returns true; false means that a message is worth composing.
bool seen(const char *kind, Site site, int variant = 0);
void report(const char *kind, Site site, const std::string &message, Severity severity = Severity::error,
            Site other = {}, int variant = 0, uint64_t count = 1);
bool any_error();

struct Statistics {
  uint64_t launches = 0, blocks = 0, threads = 0, accesses = 0;
  uint64_t writes = 0;                    // of global memory, but for atomics
  uint64_t span = 0;                      // accesses of the busiest thread, summed over launches
  uint64_t widest = 0;                    // threads of the widest launch
  std::map<std::string, uint64_t> kernels; // the same for each launch statement, by "kernel@line"
};
extern Statistics statistics;

// The report since the last call, as JSON; then everything is reset.
std::string take_report();
// At an end that the runner does not see (exit, abort, a crash): to the named file, or to standard error.
void write_last_report();

std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));

} // namespace emu

#define EMU_API extern "C" __attribute__((visibility("default")))
#define EMU_CALLER (::emu::Site{reinterpret_cast<uintptr_t>(__builtin_return_address(0)), 0})
