"""Finds ranges of the inferred inputs on which the C is defined and gives finite results; declared ranges stay.

Each parameter has a ladder of ranges, widest first. The first rung on which the whole set of cases is legal, taken for
all inferred parameters together, is the start; then one parameter after another climbs back as far as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.budget import leaves
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.checked import CheckedRun, Finding, run_checked
from cudaperf_agent.tasks.measure import with_parameter
from cudaperf_agent.tasks.model import Case, Parameter, Task, TypeKind, ValueRange
from cudaperf_agent.tasks.sizes import integers


@dataclass(frozen=True, slots=True)
class NarrowConfig:
    """The ladders, and when a result counts as finite.

    Attributes:
        floats: Ranges of float scalars and elements (``None`` is open), widest first.
        whole: Ranges of integer scalars and elements.
        sizes: Ranges of integers that size something or count iterations.
        not_finite: Share of an output's elements, over all cases, that may be infinite or NaN.
        seeds: Seeds whose cases, visible and hidden, must all be legal.
        seconds: Within which the checked build must have run all of them.
    """

    floats: tuple[ValueRange, ...] = (
        ValueRange(),
        ValueRange("-10", "10"),
        ValueRange("-1", "1"),
        ValueRange("0.001", "1000"),
        ValueRange("0.1", "10"),
        ValueRange("0.1", "2"),
        ValueRange("0.25", "0.75"),
        ValueRange("1", "100"),
    )
    whole: tuple[ValueRange, ...] = (
        ValueRange(),
        ValueRange("-1000000", "1000000"),
        ValueRange("-30000", "30000"),
        ValueRange("-1000", "1000"),
        ValueRange("0", "1000"),
        ValueRange("0", "100"),
        ValueRange("1", "100"),
        ValueRange("0", "9"),
        ValueRange("1", "3"),
    )
    sizes: tuple[ValueRange, ...] = (
        ValueRange(),
        ValueRange("1", None),
        ValueRange("2", None),
        ValueRange("1", None, True),
        ValueRange("3", None, True),
    )
    not_finite: float = 0.05
    seeds: tuple[int, ...] = (0, 1)
    seconds: float = 6.0


NARROW = NarrowConfig()


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a set of ranges will not do: an illegal call, or an output that is not finite too often."""

    finding: Finding | None
    output: str = ""

    def reason(self, task: Task) -> str:
        """The end of a sentence that says what happens on a wider range."""
        if self.finding is None:
            share = f"more than {NARROW.not_finite:.0%}".replace("%", " %")
            return f"over a wider range {share} of `{self.output}` is not finite"
        line = f" (line {self.finding.line})" if self.finding.line else ""
        return f"over a wider range {self.finding.message}{line}"


async def trouble(task: Task, *, wrap: Wrap | None = None, config: NarrowConfig = NARROW) -> Trouble | None:
    """What is wrong with `task`'s legal inputs, `None` if nothing is.

    Raises:
        InputRefused: The C does not compile, or no sizes are legal.
    """
    cases = [c for seed in config.seeds for hidden in (False, True) for c in make_cases(task, hidden=hidden, seed=seed)]
    run = await run_checked(task, cases, wrap=wrap, limits=Limits(seconds=config.seconds))
    if run.finding is not None:
        return Trouble(run.finding)
    output = _not_finite(task, cases, run, config)
    return Trouble(None, output) if output else None


def _not_finite(task: Task, cases: Sequence[Case], run: CheckedRun, config: NarrowConfig) -> str:
    written = [p.name for p in task.inputs() if p.pointer and p.written] + (["return"] if task.returns else [])
    for name in written:
        bad = total = 0
        for outputs in run.outputs:
            for leaf in leaves(outputs[name]):
                if leaf.values.dtype.kind == "f":
                    bad += int(np.count_nonzero(~np.isfinite(leaf.values)))
                    total += leaf.values.size
        if bad > config.not_finite * total:
            return name
    return ""


async def narrow(task: Task, first: Trouble, *, wrap: Wrap | None = None, config: NarrowConfig = NARROW) -> Task | None:
    """`task` with the inferred ranges cut until it is legal, each cut an assumption; `None` if none of them helps."""
    ladders = {p.name: ladder for p in task.inputs() if (ladder := _ladder(task, p, config))}
    height = max((len(ladder) for ladder in ladders.values()), default=0)
    reasons = dict.fromkeys(ladders, first)
    levels: dict[str, int] = {}
    for level in range(1, height):
        levels = {name: min(level, len(ladder) - 1) for name, ladder in ladders.items()}
        if await _trouble_at(task, ladders, levels, wrap, config) is None:
            break
    else:
        return None
    for name in ladders:
        for level in range(levels[name]):
            found = await _trouble_at(task, ladders, {**levels, name: level}, wrap, config)
            if found is None:
                levels[name] = level
                break
            reasons[name] = found
    narrowed = _at(task, ladders, levels)
    sentences = [
        f"`{name}` is assumed to {_described(ladders[name][level])}: {reasons[name].reason(task)}."
        for name, level in levels.items()
        if level
    ]
    return replace(narrowed, assumptions=(*task.assumptions, *sentences))


async def _trouble_at(
    task: Task,
    ladders: dict[str, tuple[ValueRange, ...]],
    levels: dict[str, int],
    wrap: Wrap | None,
    config: NarrowConfig,
) -> Trouble | None:
    try:
        return await trouble(_at(task, ladders, levels), wrap=wrap, config=config)
    except InputRefused as refused:  # these ranges leave no sizes at all
        return Trouble(Finding("undefined", refused.message, ""))


def _ladder(task: Task, parameter: Parameter, config: NarrowConfig) -> tuple[ValueRange, ...]:
    """The ranges to try for a parameter, its own first; empty if they may not be changed."""
    own = parameter.range
    if own.origin.declared or (parameter.pointer and not parameter.read) or parameter.index:
        return ()
    known = integers(task)
    if parameter.name in known.sizes or parameter.name in known.counts:
        ladder = config.sizes
    elif parameter.type.has_floats:
        ladder = config.floats
    elif parameter.type.kind in (TypeKind.INT, TypeKind.UINT, TypeKind.STRUCT):
        ladder = config.whole
        if parameter.type.kind is not TypeKind.STRUCT:
            ladder = tuple(r for r in ladder if _fits(parameter, r))
    else:
        return ()
    return (own, *(replace(r, origin=own.origin) for r in ladder[1:] if not (own.odd and not r.odd)))


def _fits(parameter: Parameter, range_: ValueRange) -> bool:
    """Whether the range is a real restriction of the type."""
    info = np.iinfo(parameter.type.dtype)
    if range_.low is None or range_.high is None:
        return True
    return int(range_.low) >= info.min and int(range_.high) <= info.max


def _at(task: Task, ladders: dict[str, tuple[ValueRange, ...]], levels: dict[str, int]) -> Task:
    for parameter in list(task.inputs()):
        if parameter.name in levels:
            task = with_parameter(task, replace(parameter, range=ladders[parameter.name][levels[parameter.name]]))
    return task


def _described(range_: ValueRange) -> str:
    odd = "be odd and " if range_.odd else ""
    if range_.high is None:
        return f"{odd}be at least {range_.low}"
    return f"{odd}lie in {range_.low}..{range_.high}"
