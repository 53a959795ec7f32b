"""How far a GPU's mathematical functions may be from the host's, as C text that makes the host's err as much.

All builds of the C call the same functions of one library, whose errors they therefore share: what another library
gives cannot be seen in them. Where terms cancel, an error of a few units in the last place of a term is many of the
result. `device_math_text` puts functions in place of the C library's (``--wrap``) that add the greatest error that
CUDA documents, upward or downward by call and pattern, so that `budget.reach` can tell the effects of single calls
apart and add them up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudaperf_agent.tasks.model import Task

PATTERNS = 8
"""The effects of so many calls, of those that one element depends on, are told apart."""

TURNS = PATTERNS + 2
"""Calls of one process: first nothing errs, then by each pattern, then everything upward (a bias adds up in sums)."""


@dataclass(frozen=True, slots=True)
class MaximumError:
    """Of one function, in units in the last place. `arguments`: how many it takes, all of its own type."""

    double: int
    single: int
    arguments: int = 1


# CUDA C++ Programming Guide, appendix "Mathematical Functions", without -use_fast_math. What is not here is exact
# (sqrt, fma, fmod, floor, …), or is no function of CUDA.
MAXIMUM_ERRORS: dict[str, MaximumError] = {
    "acos": MaximumError(2, 2),
    "acosh": MaximumError(3, 4),
    "asin": MaximumError(2, 2),
    "asinh": MaximumError(3, 3),
    "atan": MaximumError(2, 2),
    "atan2": MaximumError(2, 3, 2),
    "atanh": MaximumError(2, 3),
    "cbrt": MaximumError(1, 1),
    "cos": MaximumError(2, 2),
    "cosh": MaximumError(1, 2),
    "erf": MaximumError(2, 2),
    "erfc": MaximumError(5, 4),
    "exp": MaximumError(1, 2),
    "exp10": MaximumError(1, 2),
    "exp2": MaximumError(1, 2),
    "expm1": MaximumError(1, 1),
    "hypot": MaximumError(2, 3, 2),
    "j0": MaximumError(7, 9),
    "j1": MaximumError(7, 9),
    "lgamma": MaximumError(4, 6),
    "log": MaximumError(1, 1),
    "log10": MaximumError(1, 2),
    "log1p": MaximumError(1, 1),
    "log2": MaximumError(1, 1),
    "pow": MaximumError(2, 4, 2),
    "sin": MaximumError(2, 2),
    "sinh": MaximumError(2, 3),
    "tan": MaximumError(2, 4),
    "tanh": MaximumError(1, 2),
    "tgamma": MaximumError(10, 5),
    "y0": MaximumError(7, 9),
    "y1": MaximumError(7, 9),
}
_CALLED = re.compile(rf"\b(?:__builtin_)?(?P<base>{'|'.join(MAXIMUM_ERRORS)})f?\s*\(")
# Never beyond: so that what the C does with a result (an inverse function, a root) stays defined.
_WITHIN_ONE = frozenset({"cos", "sin", "tanh", "erf"})

# Columns of a Hadamard matrix by number of the call, each with a sign of its own: with fewer calls than patterns their
# effects can be told apart, and of more, those that cannot do not all cancel.
DIRECTION = f"""
static unsigned long cudaperf_turn, cudaperf_number;
static double cudaperf_direction(void)
{{
    unsigned long at = cudaperf_number++, mixed = (at + 1) * 0x9E3779B97F4A7C15ul;
    if (cudaperf_turn == 0) return 0;
    if (cudaperf_turn > {PATTERNS}) return 1;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ul;
    return (__builtin_parityl(at & (cudaperf_turn - 1)) ^ (mixed >> 63)) ? -1 : 1;
}}
"""
_OFF = """
static {type} cudaperf_off{suffix}({type} right, {type} units, {type} most)
{{
    {type} size = __builtin_fabs{suffix}(right), infinity = __builtin_inf{suffix}(), off;
    if (!(size > 0 && size < infinity)) return right;
    off = right + ({type})cudaperf_direction() * units * (__builtin_nextafter{suffix}(size, infinity) - size);
    if ((off < 0) != (right < 0)) return 0;
    return off > most ? most : off < -most ? -most : off;
}}
"""
_FUNCTION = """
{type} __real_{name}({parameters});
{type} __wrap_{name}({parameters}) {{ return cudaperf_off{suffix}(__real_{name}({passed}), {units}, {most}); }}
"""
_CALL = f"""
#define cudaperf_call cudaperf_call_of_turn
{{stub}}
#undef cudaperf_call
void cudaperf_call(void *const *cudaperf_args)
{{{{
    static unsigned long cudaperf_made;
    cudaperf_turn = cudaperf_made++ % {TURNS};
    cudaperf_number = 0;
    cudaperf_call_of_turn(cudaperf_args);
    cudaperf_turn = 0;
}}}}
"""


def device_functions(task: Task) -> tuple[str, ...]:
    """Names of the C library's functions that the source may call and CUDA has with an error of its own, sorted.

    A header of the user's, or one that makes names generic, may call what the source does not name: both types count,
    and with such a header all functions. Macros and comments count as calls, which costs time only.
    """
    named = {match["base"] for match in _CALLED.finditer(task.source)}
    own_header = '#include "' in task.source.replace("# include", "#include")
    bases = [base for base in MAXIMUM_ERRORS if own_header or base in named]
    return tuple(sorted(name for base in bases for name in (base, f"{base}f")))


def device_math_text(functions: tuple[str, ...], stub: str, direction: str = DIRECTION) -> str:
    """C text to be appended to a source in place of its call stub: calls of one process take the patterns in turn.

    Args:
        functions: From `device_functions`.
        stub: The call stub.
        direction: C text of what gives the sign and the share of each error, other than by the patterns.
    """
    parts = [direction]
    parts += [_OFF.format(type=type_, suffix=suffix) for type_, suffix in (("double", ""), ("float", "f"))]
    for name in functions:
        single = name not in MAXIMUM_ERRORS
        base = name.removesuffix("f") if single else name
        error, type_ = MAXIMUM_ERRORS[base], "float" if single else "double"
        letters = ("x", "y")[: error.arguments]
        suffix = "f" if single else ""
        parts.append(
            _FUNCTION.format(
                type=type_,
                suffix=suffix,
                name=name,
                parameters=", ".join(f"{type_} {letter}" for letter in letters),
                passed=", ".join(letters),
                units=error.single if single else error.double,
                most="1" if base in _WITHIN_ONE else f"__builtin_inf{suffix}()",
            )
        )
    return "".join(parts) + _CALL.format(stub=stub)


def device_math_flags(functions: tuple[str, ...]) -> tuple[str, ...]:
    """Flags of gcc with which the text's functions take the place of the C library's."""
    return (*(f"-fno-builtin-{name}" for name in functions), *(f"-Wl,--wrap={name}" for name in functions))
