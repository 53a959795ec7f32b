"""The ways to run the C that a candidate is compared with, each right on the contents that are timed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from cudaperf_agent.cuda.baselines import Baseline, Place
from cudaperf_agent.cuda.measure import C_FAST_MATH, C_ONE_CORE, C_OPENMP
from cudaperf_agent.cuda.timing import Contents
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Wrap, call_native
from cudaperf_agent.execution.pinned import one_core
from cudaperf_agent.tasks.bounds import surely_right
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Task, Value
from cudaperf_agent.tasks.reference_build import Build, build_library, require_library
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name
from cudaperf_agent.tasks.widen import has_floats

# Contents that one process is given, so that neither its input nor its answer is gigabytes.
_BATCH_BYTES = 64 << 20


async def native_baseline(task: Task) -> Baseline:
    """The C as fast as gcc makes it with the same results but for contraction, on one pinned core."""
    return Baseline(C_ONE_CORE, await require_library(task, Build.NATIVE), core=one_core())


async def c_baselines(
    task: Task, contents: Contents, limits: Limits, wrap: Wrap | None, place: Place | None = None
) -> list[Baseline]:
    """All ways to run the C: on one core, with ``-ffast-math``, with OpenMP.

    The first is always there. The others are left out where gcc does not build them, where one of their outputs is
    out of the error budget, and ``-ffast-math`` also where the task has no floats.

    Args:
        task: In function mode.
        contents: What is timed, and what each must give.
        limits: Of one process.
        wrap: The sandbox.
        place: Entered for each piece of work.
    """
    others = [b for b in (await _fast_math(task), await _openmp(task)) if b is not None]
    right = [await is_right(task, other, contents, limits, wrap, place) for other in others]
    return [await native_baseline(task), *(b for b, good in zip(others, right, strict=True) if good)]


async def is_right(
    task: Task, baseline: Baseline, contents: Contents, limits: Limits, wrap: Wrap | None, place: Place | None = None
) -> bool:
    """Whether every output on every content lies within the budget, and no input is changed."""
    place, at = place or nullcontext(), 0
    for batch in _batches(contents):
        cases = contents.cases[at : at + batch]
        async with place:
            run = await call_native(
                baseline.library,
                [native_arguments(task, case) for case in cases],
                limits=limits,
                env=baseline.environment,
                wrap=baseline.wrapped(wrap),
            )
            if len(run.outcomes) < len(cases):
                return False
            named = [outputs_by_name(task, outcome.outputs) for outcome in run.outcomes]
            if not await asyncio.to_thread(_all_right, task, contents, at, named):
                return False
        at += batch
    return True


def _all_right(task: Task, contents: Contents, first: int, outputs: Sequence[dict[str, Value]]) -> bool:
    for index, got in enumerate(outputs, first):
        case, expected = contents.cases[index], contents.expected[index]
        kept = all(
            got[p.name].tobytes() == case.values[p.name].tobytes()
            for p in task.inputs()
            if p.pointer and not p.written and p.name in got
        )
        quick = kept and bool(contents.bounds) and surely_right(contents.bounds[index], got)
        if not quick and not compare(task, case, expected, got).ok:
            return False
    return True


def _batches(contents: Contents) -> list[int]:
    """How many of the contents, which are of one size, each process gets."""
    most = max(1, _BATCH_BYTES // max(1, contents.bytes))
    count = len(contents.cases)
    return [min(most, count - at) for at in range(0, count, most)]


async def _fast_math(task: Task) -> Baseline | None:
    library = await build_library(task, Build.FAST) if has_floats(task) else None
    return Baseline(C_FAST_MATH, library, core=one_core()) if isinstance(library, Path) else None


async def _openmp(task: Task) -> Baseline | None:
    from cudaperf_agent.codegen.openmp.pragmas import openmp_source

    found = await asyncio.to_thread(openmp_source, task)
    library = await build_library(replace(task, source=found.text), Build.OPENMP) if found is not None else None
    return Baseline(C_OPENMP, library, threads=cores()) if isinstance(library, Path) else None


def cores() -> int:
    """Processors that OpenMP is given: all that this process may use."""
    return len(os.sched_getaffinity(0))
