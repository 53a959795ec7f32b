// What orders threads and blocks other than barriers: a fence, then an atomic here, seen by an atomic there.
#pragma once
#include <cstdint>

namespace emu {

void ordering_begin_launch();
void ordering_begin_block();
void ordering_fence(bool whole_device);
void ordering_atomic(const void *address);
// Whether the block that ran at an epoch of this launch has released, and the present block acquired, what it wrote.
bool ordering_released(uint32_t epoch);
// Whether the running thread has acquired from another thread of its block since the last barrier.
bool ordering_acquired(unsigned thread);

} // namespace emu
