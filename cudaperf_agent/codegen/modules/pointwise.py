"""Elementwise operations as C++: one template for float operands, one for integers and bool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """An elementwise operation.

    Attributes:
        real: Template for ``float`` operands; empty if there is none.
        whole: Template for integer and bool operands; empty if there is none.
        cost: About how many plain arithmetic operations it is worth.
    """

    real: str
    whole: str = ""
    cost: int = 1


def _call(name: str, cost: int = 8) -> Operation:
    return Operation(f"{name}({{0}})", cost=cost)


def _sign(symbol: str, cost: int = 1) -> Operation:
    text = f"{{0}} {symbol} {{1}}"
    return Operation(text, text, cost)


OPERATIONS: dict[str, Operation] = {
    "add": _sign("+"),
    "sub": _sign("-"),
    "mul": _sign("*"),
    "div": Operation("{0} / {1}", cost=4),
    "floor_divide": Operation("floorf({0} / {1})", "floor_divide({0}, {1})", 5),
    "trunc_divide": Operation("truncf({0} / {1})", "{0} / {1}", 5),
    "remainder": Operation("floor_remainder({0}, {1})", "floor_remainder({0}, {1})", 8),
    "fmod": Operation("fmodf({0}, {1})", "{0} % {1}", 8),
    "pow": Operation("powf({0}, {1})", cost=16),
    "atan2": Operation("atan2f({0}, {1})", cost=16),
    "maximum": Operation("larger({0}, {1})", "larger({0}, {1})"),
    "minimum": Operation("smaller({0}, {1})", "smaller({0}, {1})"),
    "eq": _sign("=="),
    "ne": _sign("!="),
    "lt": _sign("<"),
    "le": _sign("<="),
    "gt": _sign(">"),
    "ge": _sign(">="),
    "and": Operation("", "{0} & {1}"),
    "or": Operation("", "{0} | {1}"),
    "xor": Operation("", "{0} ^ {1}"),
    "not": Operation("", "!{0}"),
    "invert": Operation("", "~{0}"),
    "neg": Operation("-{0}", "-{0}"),
    "abs": Operation("fabsf({0})", "{0} < 0 ? -{0} : {0}"),
    "sign": Operation("(float)(({0} > 0.0f) - ({0} < 0.0f))", "({0} > 0) - ({0} < 0)"),
    "isnan": Operation("{0} != {0}", "false"),
    "isinf": Operation("fabsf({0}) == INFINITY", "false"),
    "where": Operation("{0} ? {1} : {2}", "{0} ? {1} : {2}"),
    "sigmoid": Operation("1.0f / (1.0f + expf(-{0}))", cost=12),
    "reciprocal": Operation("1.0f / {0}", cost=4),
    "round": _call("rintf", 1),
    "floor": _call("floorf", 1),
    "ceil": _call("ceilf", 1),
    "trunc": _call("truncf", 1),
    "sqrt": _call("sqrtf", 4),
    "rsqrt": _call("rsqrtf", 4),
    **{
        name: _call(f"{name}f")
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
            "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
        )
    },
}  # fmt: skip
"""By our own names; ``cast`` is not here, since its text depends on types."""

GIVES_BOOL = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "not", "isnan", "isinf"})
"""Operations whose result is a truth value."""
