"""Names that CUDA gives to functions, sorted by what they mean to the features."""

from __future__ import annotations

_ONE = [
    "sqrt",
    "rsqrt",
    "cbrt",
    "rcbrt",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "lgamma",
    "tgamma",
    "floor",
    "ceil",
    "round",
    "trunc",
    "rint",
    "nearbyint",
    "fabs",
    "sinpi",
    "cospi",
    "normcdf",
    "logb",
    "pow",
    "fmod",
    "fmin",
    "fmax",
    "atan2",
    "hypot",
    "fdim",
    "copysign",
    "remainder",
    "nextafter",
    "ldexp",
    "sincos",
    "fdividef",
    "saturatef",
]
_INTRINSIC = [
    "__expf",
    "__exp10f",
    "__logf",
    "__log2f",
    "__log10f",
    "__sinf",
    "__cosf",
    "__tanf",
    "__sincosf",
    "__powf",
    "__fdividef",
    "__saturatef",
    "__frcp_rn",
    "__fsqrt_rn",
    "__frsqrt_rn",
    "__fadd_rn",
    "__fsub_rn",
    "__fmul_rn",
    "__fdiv_rn",
    "__dadd_rn",
    "__dmul_rn",
    "__dsqrt_rn",
    "__mul24",
    "__mulhi",
    "__umulhi",
    "__popc",
    "__popcll",
    "__clz",
    "__clzll",
    "__ffs",
    "__ffsll",
    "__brev",
    "__byte_perm",
    "__funnelshift_l",
    "__funnelshift_r",
    "abs",
    "labs",
    "llabs",
    "min",
    "max",
    "__hadd",
    "__hsub",
    "__hmul",
    "__hdiv",
    "__hadd2",
    "__hsub2",
    "__hmul2",
    "__h2div",
    "__hmax",
    "__hmin",
    "__hneg",
    "hexp",
    "hlog",
    "hsqrt",
    "hrsqrt",
    "lrintf",
    "lroundf",
    "lround",
    "lrint",
]
OPERATIONS: dict[str, int] = {
    **{name: 1 for base in _ONE for name in (base, base + "f")},
    **dict.fromkeys(_INTRINSIC, 1),
    **dict.fromkeys(("fma", "fmaf", "__fmaf_rn", "__fma_rn", "__hfma", "__hfma2"), 2),
    "__dp4a": 8,
}
"""Arithmetic operations that a call stands for; a fused multiply-add counts 2 [ours]."""

SYNCS = frozenset({"__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or", "__syncwarp"})
LOADS = frozenset({"__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"})
STORES = frozenset({"__stcg", "__stcs", "__stwb", "__stwt"})
DIRECTIONS = frozenset(f"cudaMemcpy{way}" for way in ("HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"))
LAUNCHERS = frozenset({"cudaLaunchKernel", "cudaLaunchCooperativeKernel"})
LANE_DEPENDENT = ("__shfl_", "__match_any_sync", "__activemask", "clock")
"""Prefixes of calls whose result differs between threads though their arguments may not."""


def is_atomic(name: str) -> bool:
    """Whether a function of CUDA is an atomic read-modify-write."""
    return name.startswith("atomic")


def is_copy(name: str) -> bool:
    """Whether a function of the runtime moves data (``cudaMemset`` does not)."""
    return name.startswith("cudaMemcpy")
