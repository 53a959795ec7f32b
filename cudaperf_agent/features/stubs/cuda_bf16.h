// The bfloat16 types, as far as the structural analysis asks.
#pragma once
#include "cuda_fp16.h"
__SMALL(__nv_bfloat16)
__SMALL2(__nv_bfloat162, __nv_bfloat16)
__HD __nv_bfloat16 __float2bfloat16(float); __HD float __bfloat162float(__nv_bfloat16); __HD __nv_bfloat162 __float2bfloat162_rn(float);
