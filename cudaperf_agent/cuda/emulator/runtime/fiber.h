// Stacks for CUDA threads and the switch between them. x86-64.
#pragma once
#include "block.h"

namespace emu {

bool on_a_stack(const void *address);
// threadIdx and its like.
bool is_runtime_data(const void *address);
// The guard page below a stack was hit.
bool is_stack_overflow(const void *address);
// Runs a thread until it waits, ends or abandons the launch.
void resume(Thread &thread);
void switch_to_scheduler(Thread &thread);
// After an abandoned launch no fiber holds a stack any more.
void take_back_stacks();

} // namespace emu
