// The emulator's <cuda_runtime.h>. It is compiled once per mode into a precompiled header that every candidate begins
// with, so the usual standard headers are here too; and a guard, because #pragma once does not see through that.
#ifndef EMU_CUDA_RUNTIME_H
#define EMU_CUDA_RUNTIME_H
#ifndef __CUDACC__
#define __CUDACC__ 1
#endif
#ifndef __NVCC__
#define __NVCC__ 1
#endif
#define __CUDAPERF_EMULATOR__ 1
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_EXTENDED_LAMBDA__ 1
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "emu/types.h"
#include "emu/abi.h"
#include "emu/launch.h"
#include "emu/sync.h"
#include "emu/atomics.h"
#include "emu/math.h"
#include "emu/runtime_api.h"

#endif
