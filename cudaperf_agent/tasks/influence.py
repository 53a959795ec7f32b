"""Which inputs change no result: what a task's tests cannot tell a constant from.

Each input in turn is replaced by another draw of the same sizes, and the C is run again. Not covered: an input that
matters only for rare values of others is named too, so this is a notice and no refusal; integers that size a buffer are
not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cudaperf_agent.execution.native import Wrap, call_native
from cudaperf_agent.tasks.cases import case_of_sizes, make_cases
from cudaperf_agent.tasks.model import Case, Task, Value
from cudaperf_agent.tasks.reference_build import Build, require_library
from cudaperf_agent.tasks.sizes import integers
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name
from cudaperf_agent.tasks.values import VISIBLE_PROFILES


@dataclass(frozen=True, slots=True)
class InfluenceConfig:
    """Numbers of the search.

    Attributes:
        cases: Cases tried, of those with something in every buffer.
        draws: Other values of each input and case.
    """

    cases: int = 6
    draws: int = 3


INFLUENCE = InfluenceConfig()


@dataclass(frozen=True, slots=True)
class _Trial:
    name: str
    base: int
    case: Case


async def without_influence(
    task: Task, *, wrap: Wrap | None = None, config: InfluenceConfig = INFLUENCE
) -> tuple[str, ...]:
    """Inputs of a prepared function that were never seen to change a result; none where nothing could be tried."""
    known = integers(task)
    cases = [c for c in make_cases(task, hidden=False) if all(v.size for v in c.values.values())][-config.cases :]
    tried = [p.name for p in task.inputs() if p.name not in known.sizes and (p.read or not p.pointer)]
    if not cases or not tried:
        return ()
    trials = [t for base, case in enumerate(cases) for t in _trials(task, base, case, tried, config)]
    calls = [native_arguments(task, case, fill=0) for case in (*cases, *(t.case for t in trials))]
    run = await call_native(await require_library(task, Build.PLAIN), calls, wrap=wrap)
    if len(run.outcomes) < len(calls):
        return ()
    results = [_results(task, outputs_by_name(task, outcome.outputs)) for outcome in run.outcomes]
    felt = {
        trial.name for trial, result in zip(trials, results[len(cases) :], strict=True) if result != results[trial.base]
    }
    return tuple(name for name in tried if name not in felt)


def _trials(task: Task, base: int, case: Case, names: Sequence[str], config: InfluenceConfig) -> list[_Trial]:
    """The case with one input at a time drawn anew."""
    known = integers(task)
    found: list[_Trial] = []
    for draw in range(config.draws):
        sizes = {n: int(case.values[n]) for n in (*known.sizes, *known.counts)}
        other = case_of_sizes(task, sizes, VISIBLE_PROFILES[draw % len(VISIBLE_PROFILES)], (base, 7, draw))
        for name in names:
            value = other.values[name] if other is not None else case.values[name]
            if name in known.counts:
                value = _other_count(case.values[name], draw)
            if value.shape == case.values[name].shape and _differs(value, case.values[name]):
                found.append(_Trial(name, base, replace(case, values={**case.values, name: value})))
    return found


def _other_count(value: Value, draw: int) -> Value:
    """Fewer repetitions, which are legal where more may not be."""
    return np.asarray(value // (2 + draw), value.dtype)


def _differs(one: Value, other: Value) -> bool:
    return one.tobytes() != other.tobytes()


def _results(task: Task, outputs: dict[str, Value]) -> tuple[bytes, ...]:
    written = [p.name for p in task.inputs() if p.pointer and p.written]
    return tuple(outputs[name].tobytes() for name in (*written, *(["return"] if task.returns else [])))
