// The checker: for every four bytes of memory that kernels share, which bytes may be touched, which were ever written,
// and who wrote and read them last. Every access of the candidate comes through check_access.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "module.h"
#include "report.h"

namespace emu {

enum class Access { read, write, volatile_read, volatile_write, atomic };

void check_access(const void *address, size_t size, Access how, Site site, bool aligned = true);

void shadow_arena(char *base, size_t size);
void shadow_module(const Module &module);
void shadow_allocated(const char *begin, size_t size, bool initialised);
void shadow_freed(const char *begin, size_t size);
void shadow_forget(size_t bytes_of_arena);
// Fills a block's shared memory with poison and marks it as never written.
void begin_shared(size_t dynamic_bytes);

void mark_initialised(const void *begin, size_t size);
void copy_initialised(const void *to, const void *from, size_t size);
struct Uninitialised {
  size_t bytes = 0, longest = 0, first = 0;
};
Uninitialised uninitialised_in(const void *begin, size_t size);

// Describes an address in or just outside shared memory or among the module's variables; "" if it is elsewhere.
std::string describe_shadowed(const void *address);

} // namespace emu
