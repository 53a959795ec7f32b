"""How numbers are told: times, ages, speedups with their interval, bars of a plot."""

from __future__ import annotations

from math import log2

from cudaperf_agent.cuda.verdict import Speedup
from tui.safe import one_line


def seconds(value: float | None) -> str:
    """A duration with the unit that fits: ``12.3 µs``, ``4.56 ms``, ``1.2 s``."""
    if value is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def age(value: float) -> str:
    """How long ago, coarsely: ``12 s``, ``3 min``, ``5 h``, ``2 d``."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= size:
            return f"{int(value // size)} {unit}"
    return f"{max(int(value), 0)} s"


def speedup(value: Speedup | None) -> str:
    """``3.2× [2.9, 3.5] naive``, empty where nothing was measured."""
    return f"{value.value:.3g}× [{value.low:.3g}, {value.high:.3g}] {one_line(value.baseline, 60)}" if value else ""


def interval_bar(value: Speedup, low: float, high: float, width: int) -> str:
    """One line of a plot on a log₂ axis from `low` to `high`: ``├──●───┤`` with blanks around it, `width` wide."""
    span = log2(high) - log2(low)

    def place(at: float) -> int:
        share = (log2(max(at, 1e-9)) - log2(low)) / span if span > 0 else 0.5
        return min(max(round(share * (width - 1)), 0), width - 1)

    line = [" "] * width
    one = place(1.0)
    if low <= 1.0 <= high:
        line[one] = "┊"
    left, right, middle = place(value.low), place(value.high), place(value.value)
    line[left : right + 1] = ["─"] * (right - left + 1)
    if right > left:
        line[left], line[right] = "├", "┤"
    line[middle] = "●"
    return "".join(line)
