"""Sources that are compiled together are refused as each would be alone, and none for its neighbours."""

from __future__ import annotations

import shutil

import pytest

from tests.nvcc_batches import refused

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
GOOD = """#include <cuda_runtime.h>
static __device__ float twice(float x) { return 2 * x; }
static __global__ void k(int n, float *y)
{
    __shared__ float part[64];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? y[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = twice(part[63 - threadIdx.x]);
}
extern "C" int run(int n, float *y) { k<<<(n + 63) / 64, 64>>>(n, y); return cudaGetLastError(); }
"""
BAD = {
    "syntax": ("return 2 * x;", "return 2 * x"),
    "undeclared": ("= twice(", "= thrice("),
    "not defined anywhere": ("{ return 2 * x; }", ";"),
    "another type": ("k<<<", "k(n, y), k<<<"),
    "shared memory": ("part[64]", "part[1 << 16]"),
    "assembly": ("return 2 * x;", 'asm("no.such.thing;"); return 2 * x;'),
    "a header is missing": ("return 2 * x;", "return __half2float(__float2half(x)) * 2;"),
    "two of a name": ("static __global__", "static __device__ float twice(float x) { return x; }\nstatic __global__"),
}


async def test_the_one_that_nvcc_refuses_is_found_among_others() -> None:
    for what, (before, after) in BAD.items():
        assert before in GOOD, what
        sources = {
            "good": GOOD,
            "bad": GOOD.replace(before, after, 1),
            "with the header": f"#include <cuda_fp16.h>\n{GOOD}",
            "also good": GOOD.replace("2 * x", "3 * x"),
        }
        assert (await refused(sources)).keys() == {"bad"}, what


async def test_what_defines_macros_does_not_reach_others() -> None:
    macro = GOOD.replace("static __device__", "#define part other\nstatic __device__", 1)
    needs_it = GOOD.replace("part[threadIdx.x] =", "other[threadIdx.x] =")
    assert (await refused({"a": macro, "b": needs_it, "c": macro.replace("other", "third")})).keys() == {"b"}
