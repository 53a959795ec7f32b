// The C interface of the emulator's runtime library: what the candidate's side of the headers calls.
// `line` is the candidate's line of the call, where the header can know it.
#pragma once
#include "types.h"

enum emu_warp_op {
  EMU_SHFL,
  EMU_SHFL_UP,
  EMU_SHFL_DOWN,
  EMU_SHFL_XOR,
  EMU_BALLOT,
  EMU_SYNC,
  EMU_ACTIVE,
  EMU_MATCH_ANY,
  EMU_MATCH_ALL,
  EMU_ADD,
  EMU_MIN,
  EMU_MAX,
  EMU_UMIN,
  EMU_UMAX,
  EMU_AND,
  EMU_OR,
  EMU_XOR
};
struct emu_range {
  const void *begin;
  size_t size;
};
enum emu_memory { EMU_DEVICE, EMU_MANAGED, EMU_PINNED, EMU_HEAP };
enum emu_barrier_vote { EMU_COUNT, EMU_ALL, EMU_ANY };

#pragma GCC visibility push(default)
extern "C" {
// A module is the candidate's library or program: any address in it, its thread-local anchor, and its file's name.
void emu_module(const void *inside, const void *thread_local_anchor, const char *source_name, int checked);

// `parameters`: where the launch's arguments lie on the host, so that a kernel's copy constructors may read them.
void emu_launch(const char *kernel, int line, uint3 grid, uint3 block, size_t shared_bytes, void (*body)(void *),
                void *context, const emu_range *parameters, int parameter_count);
void emu_barrier(int line);
int emu_barrier_vote_on(int vote, int predicate, int line);
uint64_t emu_warp(int operation, unsigned mask, uint64_t value, int argument, int width, int line);
unsigned emu_active_mask(int line);
void emu_fence(int whole_device);
void emu_atomic(const void *address, size_t size, int line);
void emu_atomic_unchanged(int line);
void emu_nanosleep(int line);
void emu_trap(int line);
void emu_unsupported(const char *what, int line);
extern unsigned char emu_dynamic_shared[];

cudaError_t emu_malloc(void **pointer, size_t size, int memory);
cudaError_t emu_symbol_copy(void *to, const void *from, size_t size, size_t symbol_size, size_t offset, int to_symbol);
cudaError_t emu_set_function_attribute(const void *function, int attribute, int value);
cudaError_t emu_fail(cudaError_t error);
}
#pragma GCC visibility pop
