"""The baselines of a measured verdict, sorted by what they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

Kind = Literal["c", "naive", "limit", "hand", "torch", "end_to_end", "other"]

FASTEST_C = "fastest C"
"""The best of the C's builds that were timed: what a report to people compares with first."""

HAND = "hand-written CUDA"
LIMIT = "speed of light"
_ORDER: tuple[Kind, ...] = ("c", "torch", "hand", "naive", "limit", "end_to_end", "other")


def kind_of(baseline: str) -> Kind:
    """What a baseline of a verdict stands for, by its name."""
    name = baseline.lower()
    if "copies included" in name or "end to end" in name:
        return "end_to_end"
    if "speed of light" in name:
        return "limit"
    if "naive" in name:
        return "naive"
    if name == HAND:
        return "hand"
    if "eager" in name or "torch.compile" in name:
        return "torch"
    if name.startswith(("c ", "gcc", "clang", "fastest c", "openmp", "…")):
        return "c"
    return "other"


def with_fastest_c(speedups: Mapping[str, float]) -> dict[str, float]:
    """`speedups` with one against the fastest of the C's builds that were timed, where any was."""
    of_c = [s for name, s in speedups.items() if kind_of(name) == "c"]
    return {FASTEST_C: min(of_c), **speedups} if of_c else dict(speedups)


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """C first, then PyTorch, hand-written, naive CUDA, the limit, and end to end.

    The fastest C comes before all, and is left out where it has one build to be: it would say the same twice.
    """
    seen = dict.fromkeys(names)
    if sum(kind_of(name) == "c" and name != FASTEST_C for name in seen) < 2:
        seen.pop(FASTEST_C, None)
    return tuple(sorted(seen, key=lambda name: (name != FASTEST_C, _ORDER.index(kind_of(name)))))


def named(speedups: Mapping[str, float], kind: Kind) -> float | None:
    """The speedup against the first baseline of a kind."""
    return next((s for name, s in speedups.items() if kind_of(name) == kind), None)
