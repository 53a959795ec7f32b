// half and half2.
#pragma once
#include "emu/small_float.h"

EMU_SMALL_FLOAT(__half, __half2, 10, -14, 0x7c00u)
EMU_SMALL_NAMED(__half, __half2, half)
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
EMU_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
EMU_INLINE __half2 make_half2(__half x, __half y) { return {x, y}; }
