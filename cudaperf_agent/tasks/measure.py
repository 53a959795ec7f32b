"""Measures extents that nothing states: runs the C with buffers that end at a guard page, and fits an expression.

At each of several settings of the integer scalars a buffer grows until the C no longer runs into the guard page, and
bisection finds the least size. An expression with small integer coefficients over products of the scalars must explain
every one of them, and others that were not used to find it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.cases import case_of_sizes
from cudaperf_agent.tasks.checked import run_guarded
from cudaperf_agent.tasks.expr import evaluate, names
from cudaperf_agent.tasks.fit import SHAPE, Sample, Shape, fit
from cudaperf_agent.tasks.model import Case, Extent, Origin, Parameter, Task, TypeKind
from cudaperf_agent.tasks.usage import usage
from cudaperf_agent.tasks.values import Profile

Point = dict[str, int]
Needs = dict[str, int]


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """How extents are measured.

    Attributes:
        points: Most settings at which the least size is searched for.
        checks: Further settings in a row at which the fitted expression must hold exactly.
        low, high: Between which the integer scalars are set.
        limit: Elements beyond which a buffer is given up.
        runs: Most runs of the C per setting.
        shape: What a fitted expression may look like.
        profiles: Contents tried at each setting; the largest size counts (a search may end early).
    """

    points: int = 6
    checks: int = 4
    low: int = 2
    high: int = 13
    limit: int = 1 << 21
    runs: int = 400
    shape: Shape = SHAPE
    profiles: tuple[Profile, ...] = (Profile.POSITIVE, Profile.UNIT, Profile.SHIFTED)


MEASURE = MeasureConfig()


async def measure_extents(task: Task, *, wrap: Wrap | None = None, config: MeasureConfig = MEASURE) -> Task:
    """`task` with every missing extent measured.

    Raises:
        InputRefused: The sizes follow no simple expression; the message shows the line to write.
    """
    unknown = [p for p in task.inputs() if p.pointer and p.extent is None]
    if not unknown:
        return task
    found = await _measured(task, unknown, wrap, config)
    if isinstance(found, Task):
        return found
    # A size that only makes sense when it is odd (the width of a filter) explains nothing when it is even.
    for scalar in _scalars(task):
        if scalar.range.origin.declared or scalar.range.odd or scalar.name in found.explained:
            continue
        odd = replace(scalar.range, low=scalar.range.low or "1", odd=True)
        changed = with_parameter(task, replace(scalar, range=odd))
        again = await _measured(changed, unknown, wrap, config, small=scalar.name)
        if isinstance(again, Task):
            sentence = f"`{scalar.name}` is assumed to be odd: the extents follow a simple rule only then."
            return _assuming(again, [sentence])
    raise _refusal(task, found.parameter)


@dataclass(frozen=True, slots=True)
class _Unexplained:
    """A buffer for which no expression was found, and the scalars that explain the other buffers."""

    parameter: Parameter
    explained: frozenset[str]


async def _measured(
    task: Task, unknown: Sequence[Parameter], wrap: Wrap | None, config: MeasureConfig, small: str = ""
) -> Task | _Unexplained:
    scalars = _scalars(task)
    samples: list[tuple[Point, Needs]] = []
    known: Task | _Unexplained = _Unexplained(unknown[0], frozenset())
    confirmed = 0
    for point in _points(scalars, config, small):
        if isinstance(known, Task):
            wrong = await _disproved(known, unknown, point, wrap, config)
            confirmed = confirmed + 1 if wrong is None else 0
            if confirmed == config.checks:
                return await _finished(known, unknown, point, wrap, config)
            if wrong is None:
                continue
            known = _Unexplained(wrong, frozenset())
        if len(samples) == config.points:
            break
        needs = await _least(task, unknown, point, wrap, config)
        if needs is not None:
            samples.append((point, needs))
            known = _explained(task, unknown, [s.name for s in scalars], samples, config)
    return known if isinstance(known, _Unexplained) else _Unexplained(unknown[0], frozenset())


def _explained(
    task: Task,
    unknown: Sequence[Parameter],
    scalars: Sequence[str],
    samples: Sequence[tuple[Point, Needs]],
    config: MeasureConfig,
) -> Task | _Unexplained:
    """`task` with an expression for each unknown extent that explains all samples."""
    fitted: dict[str, str] = {}
    lacking: Parameter | None = None
    for parameter in unknown:
        found = fit(scalars, [Sample(point, needs[parameter.name]) for point, needs in samples], config.shape)
        if found is None:
            lacking = lacking or parameter
        else:
            fitted[parameter.name] = found
    if lacking is None:
        return _with_extents(task, fitted)
    return _Unexplained(lacking, frozenset().union(*(names(text) for text in fitted.values())))


async def _finished(
    known: Task, unknown: Sequence[Parameter], point: Point, wrap: Wrap | None, config: MeasureConfig
) -> Task:
    known = await _guard_zeros(known, unknown, point, wrap, config)
    sentence = "`{}` is taken to have {} elements: measured by running the C between guard pages."
    return _assuming(known, [sentence.format(p.name, _extent(known, p.name)) for p in unknown])


def _assuming(task: Task, sentences: Sequence[str]) -> Task:
    return replace(task, assumptions=(*task.assumptions, *sentences))


def with_parameter(task: Task, changed: Parameter) -> Task:
    """`task` with the input of that name replaced."""
    return replace(
        task,
        parameters=tuple(changed if p.name == changed.name else p for p in task.parameters),
        setup_inputs=tuple(changed if p.name == changed.name else p for p in task.setup_inputs),
    )


def _scalars(task: Task) -> list[Parameter]:
    compared = usage(task).compared
    integral = (TypeKind.INT, TypeKind.UINT)
    return [p for p in task.inputs() if not p.pointer and p.type.kind in integral and p.name not in compared]


def _points(scalars: Sequence[Parameter], config: MeasureConfig, small: str) -> Iterator[Point]:
    """Distinct settings; each scalar takes different values, so that products can be told apart.

    `small` names a scalar that stays below all others (a filter must fit into the image that it runs over).
    """
    rng = np.random.default_rng(20)
    values: dict[str, list[int]] = {}
    for scalar in scalars:
        least, most = config.low, config.high
        if small:
            least, most = (1, config.high - 2) if scalar.name == small else (config.high, 2 * config.high)
        values[scalar.name] = [int(v) for v in rng.permutation(_legal(scalar, least, most))]
    for number in range(config.points + 2 * config.checks):
        # Every scalar runs through all its values, each in an order of its own and with its own phase.
        yield {
            name: own[(number + number // len(own) * place) % len(own)]
            for place, (name, own) in enumerate(values.items())
        }


def _legal(scalar: Parameter, least: int, most: int) -> list[int]:
    """Values between `least` and `most` (or as near as the scalar's range allows) for a setting."""
    low, high = _end(scalar.range.low), _end(scalar.range.high)
    least = max(least, low) if low is not None else least
    least = min(least, high) if high is not None else least
    most = max(min(most, high), least) if high is not None else max(most, least)
    found = [v for v in range(least, most + 1) if v % 2 or not scalar.range.odd]
    return found or [least]


def _end(text: str | None) -> int | None:
    try:
        return int(evaluate(text, {})) if text is not None else None
    except ValueError:
        return None  # depends on other parameters: the run itself will tell


async def _least(
    task: Task, unknown: Sequence[Parameter], point: Point, wrap: Wrap | None, config: MeasureConfig
) -> Needs | None:
    """The least size of every unknown buffer at `point`, or `None` where the C faults for another reason."""
    low = {p.name: 0 for p in unknown}  # needs at least this many
    high: dict[str, int | None] = {p.name: None for p in unknown}  # is content with this many
    trial = dict(low)
    for _ in range(config.runs):
        need = await _fault(task, unknown, trial, point, wrap, config)
        if need is None:
            high.update(trial)
        elif need.name is None or need.count > config.limit:
            return None
        else:
            low[need.name] = max(low[need.name], need.count)
            known = high[need.name]
            trial[need.name] = max(low[need.name], 2 * trial[need.name]) if known is None else known
            continue
        open_ones = [p.name for p in unknown if (high[p.name] or 0) > low[p.name]]
        if not open_ones:
            return low
        name = open_ones[0]
        trial = {other: high[other] or 0 for other in trial}
        trial[name] = (low[name] + (high[name] or 0)) // 2
    return None


@dataclass(frozen=True, slots=True)
class _Need:
    name: str | None
    count: int


async def _fault(
    task: Task,
    unknown: Sequence[Parameter],
    sizes: Needs,
    point: Point,
    wrap: Wrap | None,
    config: MeasureConfig,
) -> _Need | None:
    """Which unknown buffer is too small at these sizes and how many elements it needs; `None` if all is well."""
    trial = _with_extents(task, {name: str(count) for name, count in sizes.items()})
    cases = _cases(trial, point, config)
    run = await run_guarded(trial, cases, wrap=wrap)
    if len(run.outcomes) == len(cases):
        return None
    inputs = list(task.inputs())
    if run.fault is None or run.fault.argument is None or run.fault.argument >= len(inputs) or run.fault.offset < 0:
        return _Need(None, 0)
    parameter = inputs[run.fault.argument]
    if parameter.name not in sizes:
        return _Need(None, 0)
    return _Need(parameter.name, run.fault.offset // parameter.type.size + 1)


def _cases(task: Task, point: Point, config: MeasureConfig) -> list[Case]:
    made = [case_of_sizes(task, point, profile, (7, 3, k)) for k, profile in enumerate(config.profiles)]
    return [case for case in made if case is not None]


def _with_extents(task: Task, extents: Mapping[str, str]) -> Task:
    def known(parameter: Parameter) -> Parameter:
        if parameter.name not in extents:
            return parameter
        return replace(parameter, extent=Extent(extents[parameter.name], Origin.MEASURED, parameter.line))

    return replace(
        task,
        parameters=tuple(known(p) for p in task.parameters),
        setup_inputs=tuple(known(p) for p in task.setup_inputs),
    )


async def _disproved(
    known: Task, unknown: Sequence[Parameter], point: Point, wrap: Wrap | None, config: MeasureConfig
) -> Parameter | None:
    """The first buffer whose expression is too small, or too large, at a setting that was not used to find it."""
    sizes = {p.name: _count(known, p.name, point) for p in unknown}
    need = await _fault(known, unknown, sizes, point, wrap, config)
    if need is not None:
        return next((p for p in unknown if p.name == need.name), unknown[0])
    for parameter in unknown:
        if sizes[parameter.name]:
            less = {**sizes, parameter.name: sizes[parameter.name] - 1}
            need = await _fault(known, unknown, less, point, wrap, config)
            if need is None or need.name != parameter.name:
                return parameter
    return None


async def _guard_zeros(
    known: Task, unknown: Sequence[Parameter], point: Point, wrap: Wrap | None, config: MeasureConfig
) -> Task:
    """Where a scalar of 0 means that nothing is touched, but the expression does not say so, make it say so."""
    zeros: dict[str, list[str]] = {p.name: [] for p in unknown}
    for scalar in _scalars(known):
        if _end(scalar.range.low) not in (None, 0) or scalar.range.odd:
            continue
        empty = {**point, scalar.name: 0}
        sizes = {p.name: _count(known, p.name, empty) for p in unknown}
        for parameter in unknown:
            if sizes[parameter.name] and scalar.name in names(_extent(known, parameter.name)):
                need = await _fault(known, unknown, {**sizes, parameter.name: 0}, empty, wrap, config)
                if need is None:
                    zeros[parameter.name].append(scalar.name)
    guarded = {}
    for parameter in unknown:
        expr = _extent(known, parameter.name)
        if zeros[parameter.name]:
            expr = f"({' && '.join(f'{s} > 0' for s in zeros[parameter.name])}) ? {expr} : 0"
        guarded[parameter.name] = expr
    return _with_extents(known, guarded)


def _extent(task: Task, name: str) -> str:
    parameter = next(p for p in task.inputs() if p.name == name)
    assert parameter.extent is not None
    return parameter.extent.expr


def _count(task: Task, name: str, point: Point) -> int:
    return max(0, int(evaluate(_extent(task, name), point)))


def _refusal(task: Task, parameter: Parameter) -> InputRefused:
    role = {"in": "in ", "out": "out ", "inout": "inout "}.get(parameter.role.value, "")
    scalars = _scalars(task)
    guess = scalars[0].name if scalars else "1"
    return InputRefused(
        f"nothing says how many elements `{parameter.name}` has, and running the C shows no simple rule",
        where=f"{task.path}:{parameter.line or task.first_line}",
        hint=f"Write above {task.name} how many there are, for example: "
        f"/* cudaperf: {role}{parameter.name}[{guess}] */",
    )
