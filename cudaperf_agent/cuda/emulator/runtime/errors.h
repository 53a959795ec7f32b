// The error state of the CUDA runtime: the last error, and the errors that stay until the process ends.
#pragma once
#include "../include/emu/types.h"

namespace emu {

// Remembers an error for cudaGetLastError and returns it.
cudaError_t fail(cudaError_t error);
// A kernel died: every later call returns this error.
void fail_for_good(cudaError_t error);
// cudaSuccess, or the error that stays.
cudaError_t lasting_error();

} // namespace emu
