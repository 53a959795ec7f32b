// bfloat16 and pairs of it.
#pragma once
#include "emu/small_float.h"

EMU_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, 7, -126, 0x7f80u)
EMU_SMALL_NAMED(__nv_bfloat16, __nv_bfloat162, bfloat16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
EMU_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
EMU_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
