"""What a drop-in checks of its scalar arguments: the assumptions that a call can be seen to violate.

The C function has no way to report an error, and a call that the CUDA was not made for must not look like one that
worked: a negative stride, for instance, gives a buffer no elements, so that nothing would be copied. Such a call ends
the program with a message, as a CUDA error does.

Checked are ranges of integers that the user declares, and those that the report lists because sizes are made of the
integer or because it picks an element. Not checked: floats (they reach no memory), integers whose range was narrowed
only so that tests make sense, negative bounds of loops (nothing is done then, as in the C), and elements of buffers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.listed_ranges import listed_range
from cudaperf_agent.tasks.model import Origin, Parameter, Task, TypeKind, ValueRange

Widen = Callable[[str], str]
"""Spells an expression over the parameters in 64-bit arithmetic."""

_REQUIRE = "cudaperf_require"


def checking_function(task: Task) -> list[str]:
    """The function that the checks call."""
    return [
        f"static void {_REQUIRE}(bool holds, const char *what, long long value)",
        "{",
        "    if (holds)",
        "        return;",
        f'    std::fprintf(stderr, "{task.name}: made for calls where %s, but here it is %lld\\n", what, value);',
        "    std::abort();",
        "}",
        "",
    ]


def scalar_checks(task: Task, widen: Widen) -> list[str]:
    """Statements that end the program where a scalar is outside the range that the CUDA was made for."""
    found = []
    for parameter in task.scalars:
        limits = _limits(task, parameter)
        if limits is not None:
            found += _range_check(task, parameter.name, limits, widen)
    return found


def extent_check(task: Task, parameter: Parameter, elements: str, widen: Widen) -> list[str]:
    """A statement that ends the program where a declared extent is negative because of a negative factor alone.

    A negative number of rows has nothing to do, in the C and here. A negative stride does: with zero in its place the
    buffer would have elements. Only extents that subtract can tell; strides of inferred ones are in `scalar_checks`.

    Args:
        task: The task.
        parameter: The buffer; its extent is known.
        elements: The variable that holds its extent.
        widen: Spells an expression.
    """
    extent = parameter.extent
    if extent is None or not extent.origin.declared or "-" not in extent.expr:
        return []
    used = _names(extent.expr) or set()
    without = extent.expr
    for scalar in task.scalars:
        if scalar.type.kind is TypeKind.INT and scalar.name in used:
            without = re.sub(rf"\b{scalar.name}\b", f"({scalar.name} > 0 ? {scalar.name} : 0)", without)
    if without == extent.expr:
        return []
    holds = f"{elements} >= 0 || ({widen(without)}) <= 0"
    return [f'    {_REQUIRE}({holds}, "{parameter.name} has 0 elements or more", {elements});']


def _limits(task: Task, parameter: Parameter) -> ValueRange | None:
    """What is to be checked of a scalar."""
    if parameter.type.kind not in (TypeKind.INT, TypeKind.UINT):
        return None
    if parameter.range.origin in (Origin.SPEC, Origin.COMMENT):
        return parameter.range
    return listed_range(parameter.name, task.assumptions)


def _range_check(task: Task, name: str, limits: ValueRange, widen: Widen) -> list[str]:
    low, high = (end if end is not None and _computable(task, end) else None for end in (limits.low, limits.high))
    value = widen(name)
    conditions = []
    if low is not None:
        conditions.append(f"{value} >= {_closed(widen(low))}")
    if high is not None:
        conditions.append(f"{value} <= {_closed(widen(high))}")
    if limits.odd:
        conditions.append(f"{value} % 2 != 0")
    if not conditions:
        return []
    holds = " && ".join(conditions)
    if low is not None and high is not None and (_names(low) or _names(high)):
        # Where sizes leave no value at all, as 0..n-1 does for n = 0, there is nothing to do.
        holds = f"{_closed(widen(low))} > {_closed(widen(high))} || ({holds})"
    return [f"    {_REQUIRE}({holds}, {json.dumps(_words(name, low, high, limits.odd))}, {value});"]


def _words(name: str, low: str | None, high: str | None, odd: bool) -> str:
    if low is None and high is None:
        return f"{name} is odd"
    ends = f"lies in {low}..{high}" if low and high else f"is {low} or more" if low else f"is {high} or less"
    return f"{name} {ends}{' and is odd' if odd else ''}"


def _closed(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _computable(task: Task, text: str) -> bool:
    """Whether the end of a range is an integer expression of scalars of the entry alone."""
    found = _names(text)
    integers = {p.name for p in task.scalars if p.type.kind in (TypeKind.INT, TypeKind.UINT)}
    return found is not None and "." not in text and found <= integers


def _names(text: str) -> set[str] | None:
    """The variables of an expression; `None` if it is not one."""
    try:
        return expr.names(text)
    except expr.ExprError:
        return None
