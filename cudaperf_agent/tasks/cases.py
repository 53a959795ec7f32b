"""Test inputs of a task: legal sizes combined with legal values, deterministic by seed, visible and hidden sets."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.expr import names
from cudaperf_agent.tasks.model import Case, Parameter, Task, TypeKind, Value
from cudaperf_agent.tasks.sizes import PLAN, SizePlan, Sizes, bounds_of, choose, count_of, integers
from cudaperf_agent.tasks.usage import Usage, usage
from cudaperf_agent.tasks.values import (
    HIDDEN_PROFILES,
    VISIBLE_PROFILES,
    Bounds,
    Profile,
    draw,
    draw_whole,
    integer_interval,
)

_MOST_ELEMENTS = 1 << 31


def make_cases(task: Task, *, hidden: bool, seed: int = 0, plan: SizePlan = PLAN) -> tuple[Case, ...]:
    """The visible or the hidden test cases of `task`.

    Args:
        task: In function mode every buffer has an extent (see `prepare.prepare`).
        hidden: Which set; the two differ in seed, sizes and distributions.
        seed: Another seed gives other sizes and contents.
        plan: Sizes and budgets.

    Raises:
        InputRefused: No combination of sizes is legal.
    """
    if task.mode == "program":
        from cudaperf_agent.tasks.program import program_cases

        return program_cases(task, hidden=hidden, seed=seed, plan=plan)
    known = integers(task)
    rng = np.random.default_rng([seed, int(hidden), 0])
    found = usage(task)
    profiles = HIDDEN_PROFILES if hidden else VISIBLE_PROFILES
    cases: list[Case] = []
    for number, sizes in enumerate(choose(known, hidden=hidden, rng=rng, plan=plan)):
        case = _case(task, sizes, profiles[number % len(profiles)], (seed, int(hidden), number), found, known.sizes)
        if case is not None:
            cases.append(replace(case, name=_unused(case.name, cases), hidden=hidden))
    if not cases:
        raise InputRefused(
            f"no combination of sizes is legal for {task.name}",
            where=f"{task.path}:{task.first_line}",
            hint="Check the ranges of the `cudaperf:` comment: every combination tried has an empty range.",
        )
    return tuple(cases)


def sized_case(task: Task, sizes: Mapping[str, int], seed: int) -> Case:
    """One case of given sizes, for timing; integers not in `sizes` get their usual small values.

    Raises:
        InputRefused: The sizes are not legal.
    """
    known = integers(task)
    rng = np.random.default_rng([seed, 2, 0])
    counts: Sizes = {}
    for name in (*known.sizes, *known.counts):
        bounds = bounds_of(known.ranges[name], sizes) or Bounds()
        counts[name] = int(min(bounds.high if bounds.high is not None else PLAN.count, PLAN.count))
    chosen = {**counts, **sizes}
    profile = VISIBLE_PROFILES[int(rng.integers(0, 2))]
    if task.mode == "program":
        from cudaperf_agent.tasks.program import sized_input

        case = sized_input(task, chosen, profile, seed)
    else:
        case = _case(task, chosen, profile, (seed, 2, 0), usage(task), tuple(chosen))
    if case is None:
        raise InputRefused(
            f"the sizes {dict(sizes)} are not legal for {task.name}", where=f"{task.path}:{task.first_line}"
        )
    return case


def case_of_sizes(task: Task, sizes: Sizes, profile: Profile, seed: tuple[int, int, int]) -> Case | None:
    """One case with exactly these integers, `None` where they are not legal. `seed` tells it from other cases."""
    return _case(task, sizes, profile, seed, usage(task), tuple(sizes))


def _case(
    task: Task, sizes: Sizes, profile: Profile, seed: tuple[int, int, int], found: Usage, shown: Sequence[str]
) -> Case | None:
    """One case, or `None` where a buffer with elements has no legal value for them."""
    env: dict[str, int | float] = dict(sizes)
    values: dict[str, Value] = {}
    for parameter in _dependencies_first(task):
        rng = np.random.default_rng([*seed, zlib.crc32(parameter.name.encode())])
        if parameter.name in sizes:
            values[parameter.name] = np.array(sizes[parameter.name], parameter.type.dtype)
            if int(values[parameter.name]) != sizes[parameter.name]:
                return None  # a size that its own type cannot hold
            continue
        value = _value(task, parameter, env, values, profile, rng, found)
        if value is None:
            return None
        values[parameter.name] = value
        if not parameter.pointer and parameter.type.kind is not TypeKind.STRUCT:
            env[parameter.name] = value.item()
    name = " ".join(f"{size}={sizes[size]}" for size in shown if size in sizes) or "fixed size"
    return Case(name, {p.name: values[p.name] for p in task.inputs()})


def _dependencies_first(task: Task) -> list[Parameter]:
    """Inputs in an order in which all can be drawn: scalars that others need, buffers, scalars compared with them."""
    inputs = list(task.inputs())
    compared = usage(task).compared
    needed = set().union(*(names(e) for p in inputs for e in (p.range.low, p.range.high) if e))
    needed |= set().union(*(names(p.extent.expr) for p in inputs if p.extent))

    def rank(parameter: Parameter) -> int:
        if not parameter.pointer and parameter.name in needed:
            return 0
        return 2 if parameter.name in compared else 1

    return sorted(inputs, key=rank)


def _value(
    task: Task,
    parameter: Parameter,
    env: Mapping[str, int | float],
    drawn: Mapping[str, Value],
    profile: Profile,
    rng: np.random.Generator,
    found: Usage,
) -> Value | None:
    bounds = bounds_of(parameter.range, env)
    if bounds is None:
        return None
    if parameter.pointer:
        return _buffer(task, parameter, bounds, env, profile, rng)
    if bounds.empty:
        return None
    elements = [drawn[b] for b in found.compared.get(parameter.name, ()) if b in drawn and drawn[b].size]
    if elements and rng.random() < 0.5:
        candidates = elements[int(rng.integers(0, len(elements)))].reshape(-1)
        if candidates.dtype.names is None:
            picked = candidates[int(rng.integers(0, candidates.size))]
            own = np.array(picked).astype(parameter.type.dtype)
            inside = (bounds.low is None or own >= bounds.low) and (bounds.high is None or own <= bounds.high)
            if inside and own == picked:
                return own
    return np.asarray(draw(parameter.type, 1, bounds, profile, rng)).reshape(())


def _buffer(
    task: Task,
    parameter: Parameter,
    bounds: Bounds,
    env: Mapping[str, int | float],
    profile: Profile,
    rng: np.random.Generator,
) -> Value | None:
    count = count_of(parameter.extent.expr if parameter.extent else None, env)
    if count is None or count > _MOST_ELEMENTS:
        return None
    if not parameter.read:
        return np.zeros(count, parameter.type.dtype)
    if parameter.index and bounds.free:
        bounds = Bounds(0, _smallest_extent(task, parameter, env) - 1)
    if count and bounds.empty:
        return None
    if not count:
        return np.zeros(0, parameter.type.dtype)
    values = None
    if (parameter.index or parameter.ascending) and profile is not Profile.TIES:
        profile = Profile.SCALED  # subscripts range over all there is, not over a part that suits small numbers
        values = draw_whole(parameter.type, count, bounds, rng)
    if values is None:
        values = draw(parameter.type, count, bounds, profile, rng)
    if parameter.ascending:
        values = np.sort(values)
        if parameter.type.kind in (TypeKind.INT, TypeKind.UINT) and not bounds.free and rng.random() < 0.75:
            # the usual form of offsets: the first is the least and the last the greatest legal value
            low, high = integer_interval(parameter.type, bounds)
            values[-1], values[0] = high, low
            if count == 1:
                values[0] = low
    return values


def _smallest_extent(task: Task, index: Parameter, env: Mapping[str, int | float]) -> int:
    """Elements of the smallest other buffer that is not itself an index: what a bare `index` may point into."""
    counts = [count_of(p.extent.expr, env) for p in task.buffers if p.extent and not p.index and p.name != index.name]
    return min((c for c in counts if c), default=1)


def _unused(name: str, cases: Sequence[Case]) -> str:
    taken = {case.name for case in cases}
    if name not in taken:
        return name
    return next(f"{name} #{k}" for k in range(2, len(cases) + 3) if f"{name} #{k}" not in taken)
