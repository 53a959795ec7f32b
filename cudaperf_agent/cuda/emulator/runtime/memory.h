// Device memory: one arena of address space, allocations with unaddressable gaps, addresses never handed out twice.
#pragma once
#include <cstddef>
#include <string>

#include "../include/emu/abi.h"
#include "report.h"

namespace emu {

struct Allocation {
  char *begin;
  size_t size;
  emu_memory kind;
  bool live;
  int number;
  Site site;

  const char *end() const { return begin + size; }
};

void open_arena();
bool in_arena(const void *address);
// Whether the kernel may touch the page without a fault: inside what the arena has handed out, gaps included.
bool in_used_arena(const void *address);
// The allocation (live or freed) that holds an address, or null.
const Allocation *allocation_at(const void *address);
// "byte 40 of the 40-byte allocation of line 12", "4 bytes past the end of …", "address 0x…".
std::string describe(const void *address);

cudaError_t allocate(void **pointer, size_t size, emu_memory kind, Site site);
cudaError_t release(void *pointer, bool host, Site site);
size_t bytes_in_use();
void report_leaks();

} // namespace emu
