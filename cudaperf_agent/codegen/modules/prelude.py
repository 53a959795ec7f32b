"""Device functions that generated kernels call; a file holds those that it uses."""

from __future__ import annotations

import re

HEADERS = "#include <cuda_runtime.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <math.h>\n"

_PIECES: dict[str, str] = {
    "MOST_BLOCKS": "static const long long MOST_BLOCKS = 2147483647;",
    "FURTHEST": "static const long long FURTHEST = 9223372036854775807LL;",
    "blocks_for": """\
static long long blocks_for(long long count, long long each)
{
    return (count + each - 1) / each;
}""",
    "larger": """\
// The larger one; NaN if either is.
template <typename T> __device__ T larger(T a, T b)
{
    return a > b || a != a ? a : b;
}""",
    "smaller": """\
// The smaller one; NaN if either is.
template <typename T> __device__ T smaller(T a, T b)
{
    return a < b || a != a ? a : b;
}""",
    "floor_divide": """\
template <typename T> __device__ T floor_divide(T a, T b)
{
    const T quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}""",
    "floor_remainder": """\
// The remainder that has the sign of the divisor.
__device__ inline float floor_remainder(float a, float b)
{
    const float rest = fmodf(a, b);
    return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
template <typename T> __device__ T floor_remainder(T a, T b)
{
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "Sum": """\
struct Sum {
    template <typename T> static __device__ T of(T a, T b) { return a + b; }
};""",
    "Product": """\
struct Product {
    template <typename T> static __device__ T of(T a, T b) { return a * b; }
};""",
    "Larger": """\
struct Larger {
    template <typename T> static __device__ T of(T a, T b) { return larger(a, b); }
    template <typename T> static __device__ bool before(T a, T b) { return a > b; }
};""",
    "Smaller": """\
struct Smaller {
    template <typename T> static __device__ T of(T a, T b) { return smaller(a, b); }
    template <typename T> static __device__ bool before(T a, T b) { return a < b; }
};""",
    "Best": """\
// A value and its place.
template <typename T> struct Best {
    T value;
    long long at;
};""",
    "First": """\
// The better value; the first of equal ones; NaN is better than all.
template <typename Order> struct First {
    template <typename T> static __device__ Best<T> of(Best<T> a, Best<T> b)
    {
        const bool bad_a = a.value != a.value, bad_b = b.value != b.value;
        if (bad_a != bad_b)
            return bad_a ? a : b;
        if (!bad_a && a.value != b.value)
            return Order::before(a.value, b.value) ? a : b;
        return a.at < b.at ? a : b;
    }
};""",
    "from_lane": """\
template <typename T> __device__ T from_lane(T value, int away)
{
    return __shfl_xor_sync(0xffffffffu, value, away);
}""",
    "best_from_lane": """\
template <typename T> __device__ Best<T> from_lane(Best<T> value, int away)
{
    const T other = __shfl_xor_sync(0xffffffffu, value.value, away);
    const long long at = __shfl_xor_sync(0xffffffffu, value.at, away);
    return Best<T>{other, at};
}""",
    "across_warp": """\
// The lanes' values combined, in all lanes.
template <typename Op, typename T> __device__ T across_warp(T value)
{
    for (int away = 16; away > 0; away /= 2)
        value = Op::of(value, from_lane(value, away));
    return value;
}""",
    "across_block": """\
// The threads' values combined, in all threads of the block.
template <typename Op, typename T> __device__ T across_block(T value)
{
    __shared__ T part[32];
    value = across_warp<Op>(value);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = value;
    __syncthreads();
    value = part[0];
    for (unsigned warp = 1; warp < blockDim.x / 32; warp++)
        value = Op::of(value, part[warp]);
    __syncthreads(); // before the next use of `part`
    return value;
}""",
}
_NEEDS = {
    "across_block": ("across_warp",), "across_warp": ("from_lane",), "Larger": ("larger",), "Smaller": ("smaller",),
}  # fmt: skip


def prelude(text: str) -> str:
    """The headers and functions that a text uses."""
    used = {name for name in _PIECES if re.search(rf"\b{name}\b", text)}
    for name, needed in _NEEDS.items():
        if name in used:
            used.update(needed)
    if "Best" in used and "from_lane" in used:
        used.add("best_from_lane")
    return "\n\n".join([HEADERS + "\n" + _constants(used), *(p for n, p in _PIECES.items() if n in used and "\n" in p)])


def _constants(used: set[str]) -> str:
    return "\n".join(p for n, p in _PIECES.items() if n in used and "\n" not in p)
