"""Error budgets as a lowest and a highest value per element: a quick look that accepts almost every right output.

`compare.compare` decides. What lies within these bounds it would accept, too; what does not may still be right (another
build's value, a NaN), and is compared in full. On the millions of elements that are timed on, this is the difference
between hundredths of a second and tenths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cudaperf_agent.tasks.budget import Expected, Part, leaves
from cudaperf_agent.tasks.model import Value

_BLOCK = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class PartBounds:
    """Lowest and highest value that is surely right, per element, in the output's own type."""

    low: Value
    high: Value


@dataclass(frozen=True, slots=True, eq=False)
class OutputBounds:
    """Of one output: its type and size, and its parts' bounds in the order of `budget.leaves`."""

    dtype: np.dtype[np.generic]
    size: int
    parts: tuple[PartBounds, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Of all outputs of a case, by name."""

    outputs: dict[str, OutputBounds]


def bounds_of(expected: Expected) -> Bounds:
    """Bounds from the budgets of one case (function mode)."""
    return Bounds(
        {
            output.name: OutputBounds(output.value.dtype, output.value.size, tuple(map(_bounds, output.parts)))
            for output in expected.outputs
        }
    )


def surely_right(bounds: Bounds, outputs: Mapping[str, Value]) -> bool:
    """Whether every element of every output is within bounds; `False` says nothing."""
    for name, wanted in bounds.outputs.items():
        got = outputs.get(name)
        if got is None or got.dtype != wanted.dtype or got.size != wanted.size:
            return False
        for leaf, part in zip(leaves(got), wanted.parts, strict=True):
            for at in range(0, leaf.values.size, _BLOCK):
                block = leaf.values[at : at + _BLOCK]
                low, high = part.low[at : at + _BLOCK], part.high[at : at + _BLOCK]
                if not ((block >= low) & (block <= high)).all():
                    return False
    return True


def _bounds(part: Part) -> PartBounds:
    if part.allowed is None:
        return PartBounds(part.reference, part.reference)
    reference = part.reference
    with np.errstate(all="ignore"):
        exact = reference.astype(np.longdouble if reference.dtype.itemsize > 4 else np.float64)
        # Rounding to the output's type may widen by half a unit: one unit inward, but never past the reference.
        low = np.nextafter((exact - part.allowed).astype(reference.dtype), np.array(np.inf, reference.dtype))
        high = np.nextafter((exact + part.allowed).astype(reference.dtype), np.array(-np.inf, reference.dtype))
    # An infinity is only right as itself; a NaN is never within bounds.
    finite = np.isfinite(reference)
    return PartBounds(
        np.where(finite, np.minimum(low, reference), reference),
        np.where(finite, np.maximum(high, reference), reference),
    )
