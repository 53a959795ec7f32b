"""Chooses the integers that size a case: zero, one, primes, block edges, several blocks, within a budget of work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cudaperf_agent.tasks.expr import ExprError, evaluate, names
from cudaperf_agent.tasks.model import Parameter, StdinItem, Task, TypeKind, ValueRange
from cudaperf_agent.tasks.usage import usage
from cudaperf_agent.tasks.values import Bounds

Sizes = dict[str, int]


@dataclass(frozen=True, slots=True)
class SizePlan:
    """Which sizes are tried, and how large a case may get.

    Attributes:
        visible, hidden: Sizes of a task with one size scalar, smallest first.
        visible_many, hidden_many: Sizes that the scalars of a task with several take in turn.
        elements: Most elements of all buffers of a case together, those of constant extent not counted.
        work, hidden_work: Most innermost iterations of a case, estimated as the product of as many sizes as loops nest.
            Hidden cases run once per winner, not once per turn, and may take longer.
        cases, hidden_cases: Cases of one set.
        fixed_cases: Cases of a set where no scalar sizes or counts anything, so that only the contents differ.
        count: Largest value of a scalar that only counts iterations.
        few: At which tries such scalars are 0, 1, …
        shrink: Factor by which the largest size is cut while a case is over budget.
    """

    visible: tuple[int, ...] = (0, 1, 2, 7, 16, 33, 64, 255, 257, 1000, 2048)
    hidden: tuple[int, ...] = (0, 1, 3, 13, 17, 32, 127, 256, 511, 769, 1023, 2503)
    visible_many: tuple[int, ...] = (1, 3, 8, 17, 32, 45, 70, 257)
    hidden_many: tuple[int, ...] = (1, 2, 5, 13, 31, 33, 48, 67, 129, 300)
    elements: int = 12_000
    work: int = 120_000
    hidden_work: int = 600_000
    cases: int = 14
    hidden_cases: int = 18
    fixed_cases: int = 4
    count: int = 5
    few: tuple[int, ...] = (5, 6)
    shrink: float = 0.8


PLAN = SizePlan()


@dataclass(frozen=True, slots=True)
class Integers:
    """The integer scalars of a task by what they do.

    Attributes:
        sizes: In an extent or a dimension.
        counts: In the head of a loop, and in no extent.
        low: Least legal value of each of them that the task's form implies (1 inside variably modified types).
        ranges: Declared or inferred range of each.
        extents: Extents of all buffers.
        linked: Names that a declared range of something else depends on.
        depth: Deepest nesting of loops.
    """

    sizes: tuple[str, ...]
    counts: tuple[str, ...]
    low: dict[str, int]
    ranges: dict[str, ValueRange]
    extents: tuple[str, ...]
    depth: int


def integers(task: Task) -> Integers:
    """Sort the integer scalars of `task` (in program mode: of its ``stdin`` clause)."""
    items: Sequence[Parameter | StdinItem] = list(task.inputs()) if task.mode == "function" else task.stdin
    scalars = [i for i in items if _is_integer_scalar(i)]
    extents = [e for e in (_extent(i) for i in items) if e]
    dims = [d for i in items if isinstance(i, Parameter) for d in i.dims]
    used = set().union(*(names(text) for text in (*extents, *dims)))
    ends = [e for i in items for e in (i.range.low, i.range.high) if e and not _is_scalar(i)]
    used |= set().union(*(names(text) for text in ends))
    found = usage(task)
    sizes = tuple(s.name for s in scalars if s.name in used)
    counts = tuple(
        s.name for s in scalars if s.name not in used and (s.name in found.counts and s.name not in found.compared)
    )
    # An outer dimension of an array parameter is no part of its type: only the inner ones must be positive.
    inner = set().union(*(names(d) for i in items if isinstance(i, Parameter) for d in i.dims[1:]))
    low = {name: 1 if name in inner else 0 for name in (*sizes, *counts)}
    return Integers(sizes, counts, low, {s.name: s.range for s in scalars}, tuple(extents), found.depth)


def _extent(item: Parameter | StdinItem) -> str | None:
    if isinstance(item, StdinItem):
        return item.extent
    return item.extent.expr if item.extent else None


def _is_scalar(item: Parameter | StdinItem) -> bool:
    return item.extent is None if isinstance(item, StdinItem) else not item.pointer


def _is_integer_scalar(item: Parameter | StdinItem) -> bool:
    if isinstance(item, StdinItem):
        ends = (item.range.low, item.range.high)
        return item.extent is None and not any(e and ("." in e or "e" in e.lower()) for e in ends)
    return not item.pointer and item.type.kind in (TypeKind.INT, TypeKind.UINT)


def bounds_of(range_: ValueRange, env: Mapping[str, int | float]) -> Bounds | None:
    """The range evaluated over `env`; `None` if it cannot be (an expression divides by zero)."""
    try:
        low = evaluate(range_.low, env) if range_.low is not None else None
        high = evaluate(range_.high, env) if range_.high is not None else None
    except ExprError:
        return None
    return Bounds(low, high, range_.odd)


def count_of(extent: str | None, env: Mapping[str, int | float]) -> int | None:
    """Elements of an extent over `env`, negative being none; `None` if it cannot be evaluated."""
    if extent is None:
        return 0
    try:
        return max(0, int(evaluate(extent, env)))
    except ExprError:
        return None


def choose(known: Integers, *, hidden: bool, rng: np.random.Generator, plan: SizePlan = PLAN) -> list[Sizes]:
    """Legal size combinations, smallest first, as many as the plan says; no two alike unless there is but one."""
    if not known.sizes and not known.counts:
        only = _fit({}, known, plan, plan.work)
        return [] if only is None else [only] * plan.fixed_cases
    found: list[Sizes] = []
    shrunk = False
    most_cases = plan.hidden_cases if hidden else plan.cases
    for turn, wish in enumerate(_wishes(known.sizes, hidden, rng, plan)):
        counts = {name: int(rng.integers(0, plan.count, endpoint=True)) for name in known.counts}
        for name in known.counts:  # a declared range may be wide: small values often, large ones sometimes
            bounds = bounds_of(known.ranges[name], wish)
            if bounds and bounds.high is not None and bounds.high > plan.count:
                low = max(0, int(bounds.low or 0))
                most = math.log1p(int(bounds.high) - low)
                least = most / 2 if turn % 2 else min(0.5, most)
                counts[name] = int(low + math.expm1(rng.uniform(least, most)))
            if turn in plan.few:
                counts[name] = plan.few.index(turn)
        fitted = _fit({**wish, **counts}, known, plan, plan.hidden_work if hidden else plan.work)
        if fitted is None or fitted in found:
            continue
        if len(known.sizes) == 1 and fitted[known.sizes[0]] < wish[known.sizes[0]]:
            if shrunk:  # one case at the budget is enough; the others keep the sizes that were meant
                continue
            shrunk = True
        found.append(fitted)
        if len(found) == most_cases:
            break
    return sorted(found, key=lambda sizes: sum(sizes[name] for name in known.sizes))


def _wishes(sizes: tuple[str, ...], hidden: bool, rng: np.random.Generator, plan: SizePlan) -> Iterator[Sizes]:
    """Combinations that would be good, legal or not, the indispensable ones first."""
    if len(sizes) <= 1:
        for value in reversed(plan.hidden if hidden else plan.visible):
            yield dict.fromkeys(sizes, value)
        for _ in range(4 * plan.cases if sizes else plan.cases):
            yield dict.fromkeys(sizes, int(math.exp(rng.uniform(math.log(4), math.log(2000)))))
        return
    pool = plan.hidden_many if hidden else plan.visible_many
    small = pool[1:5]
    yield dict.fromkeys(sizes, 0)
    yield dict.fromkeys(sizes, 1)
    for turn, name in enumerate(sizes):
        rest = {other: int(pool[2 + (turn + k) % 4]) for k, other in enumerate(sizes)}
        yield {**rest, name: 0}
        yield {**rest, name: 1}
        yield {**{other: int(small[(turn + k) % len(small)]) for k, other in enumerate(sizes)}, name: pool[-1]}
    for _ in range(20 * plan.cases):
        yield {name: int(rng.choice(pool[1:])) for name in sizes}


def _fit(wish: Sizes, known: Integers, plan: SizePlan, work: int) -> Sizes | None:
    """`wish` made legal and brought under the budget, or `None`."""
    values: Sizes | None = dict(wish)
    for _ in range(60):
        values = legal(values, known) if values is not None else None
        if values is None:
            return None
        counts = [count_of(extent, values) for extent in known.extents]
        if None in counts:
            return None
        total = sum(c for c, extent in zip(counts, known.extents, strict=True) if c and extent and names(extent))
        if total <= plan.elements and _work(values, known) <= work:
            return values
        largest = max(values, key=lambda name: (values or {})[name])
        if values[largest] <= 1:
            return None
        values[largest] = int(values[largest] * plan.shrink)
    return None


def _work(values: Sizes, known: Integers) -> int:
    ordered = sorted((max(1, v) for v in values.values()), reverse=True)
    if not ordered:
        return 1
    ordered += [ordered[-1]] * (known.depth - len(ordered))
    return math.prod(ordered[: known.depth])


def legal(values: Sizes, known: Integers) -> Sizes | None:
    """Every integer moved into its range, `None` where there is no such value.

    Ranges may name each other, hence the second round.
    """
    values = dict(values)
    for _ in range(2):
        for name in values:
            bounds = bounds_of(known.ranges[name], values)
            if bounds is None or bounds.empty:
                return None
            low = max(known.low[name], math.ceil(bounds.low) if bounds.low is not None else 0)
            high = math.floor(bounds.high) if bounds.high is not None else None
            value = max(low, values[name])
            if high is not None:
                value = min(high, value)
            if bounds.odd and value % 2 == 0:
                value += 1 if high is None or value < high else -1
            if value < low:
                return None
            values[name] = value
    return values
