// The candidate's module: where its code, its variables and its static shared memory lie.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace emu {

struct Module {
  std::string path, source;
  uintptr_t base = 0, begin = 0, end = 0;      // load address, mapped range
  char *globals = nullptr;                     // its writable segment: __device__ and __constant__ variables
  size_t globals_size = 0;
  char *static_shared = nullptr;               // its thread-local segment
  size_t static_shared_size = 0;

  bool contains(uintptr_t address) const { return address >= begin && address < end; }
};
const Module &module();

// "name+8" of the variable that holds an address of the module (thread-local or not), "" if unknown.
std::string symbol_at(const void *address);

} // namespace emu
