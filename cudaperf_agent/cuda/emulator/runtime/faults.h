// Faults inside kernels become findings; faults of host code go to whoever handled them before us.
#pragma once

namespace emu {

void watch_faults();

} // namespace emu
