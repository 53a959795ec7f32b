#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include "config.h"
#include "races.h"
#include "report.h"

#ifndef __x86_64__
#error "The emulator switches stacks in x86-64 assembly; other processors are not supported yet."
#endif

// Saves the callee-saved registers on the present stack, its pointer in *save, and continues on the other stack.
extern "C" void emu_switch(void **save, void *to);
asm(R"(
  .text
  .hidden emu_switch
  .type emu_switch, @function
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size emu_switch, .-emu_switch
)");

EMU_API uint3 emu_thread_index, emu_block_index;
EMU_API dim3 emu_block_dim, emu_grid_dim;
uint3 emu_thread_index, emu_block_index;
dim3 emu_block_dim, emu_grid_dim;

namespace emu {

namespace {

char *stacks = nullptr;
std::vector<int> free_stacks;
std::vector<bool> guarded;
void *scheduler_stack = nullptr;

void open_stacks() {
  void *at = mmap(nullptr, MAX_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    perror("cudaperf emulator: cannot reserve stacks");
    abort();
  }
  stacks = static_cast<char *>(at);
  guarded.assign(MAX_THREADS, false);
  take_back_stacks();
}

// The first code on a fresh stack; a finished fiber is never resumed, its stack goes to the next thread.
void fiber_main() {
  run.body(run.context);
  run.current->state = State::done;
  switch_to_scheduler(*run.current);
  abort();
}

void prepare(Thread &thread) {
  if (!stacks) open_stacks();
  thread.stack = free_stacks.back();
  free_stacks.pop_back();
  char *low = stacks + static_cast<size_t>(thread.stack) * STACK_BYTES;
  if (!guarded[static_cast<size_t>(thread.stack)]) {
    guarded[static_cast<size_t>(thread.stack)] = true;
    mprotect(low, PAGE, PROT_NONE);
  }
  // What emu_switch pops: six registers and the address of fiber_main, so aligned as after a call.
  void **top = reinterpret_cast<void **>(low + STACK_BYTES - 64);
  top[0] = reinterpret_cast<void *>(&fiber_main);
  top[1] = nullptr;
  thread.stack_pointer = top - 6;
  memset(thread.stack_pointer, 0, 6 * sizeof(void *));
}

} // namespace

bool on_a_stack(const void *address) {
  return stacks && address >= stacks && address < stacks + MAX_THREADS * STACK_BYTES;
}

bool is_stack_overflow(const void *address) {
  return on_a_stack(address) && static_cast<size_t>(static_cast<const char *>(address) - stacks) % STACK_BYTES < PAGE;
}

void resume(Thread &thread) {
  if (thread.state == State::fresh) prepare(thread);
  thread.state = State::ready;
  run.current = &thread;
  emu_thread_index = thread.position;
  emu_switch(&scheduler_stack, thread.stack_pointer);
  settle_pending_write();
  run.current = nullptr;
  if (thread.state == State::done) free_stacks.push_back(thread.stack);
}

void switch_to_scheduler(Thread &thread) { emu_switch(&thread.stack_pointer, scheduler_stack); }

void take_back_stacks() {
  free_stacks.clear();
  for (int i = MAX_THREADS - 1; i >= 0; i--) free_stacks.push_back(i);
}

bool is_runtime_data(const void *address) {
  auto *p = static_cast<const char *>(address);
  for (const uint3 *v : {&emu_thread_index, &emu_block_index})
    if (p >= reinterpret_cast<const char *>(v) && p < reinterpret_cast<const char *>(v + 1)) return true;
  for (const dim3 *v : {&emu_block_dim, &emu_grid_dim})
    if (p >= reinterpret_cast<const char *>(v) && p < reinterpret_cast<const char *>(v + 1)) return true;
  return false;
}

} // namespace emu
