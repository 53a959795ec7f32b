"""One case of more than a million elements for a reduction: its faults may show only where many blocks are combined.

It runs on the build that the other cases ran on, checks and all: without checks it would run in half the time, but
first take a second to build.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace

from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.judge import judge
from cudaperf_agent.cuda.trials import FIRST_POISON, Run, Suite
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.oracle import ORACLE_LIMITS, Oracle
from cudaperf_agent.tasks.sizes import Sizes, bounds_of, count_of, integers


@dataclass(frozen=True, slots=True)
class LargeCase:
    """Whether a task has a large case, and what it may cost.

    Attributes:
        size: Value of every size, as far as its range allows. With 256 threads a block and 8 elements each, partial
            results are 782, so that one block that combines them takes three times its width, and has a rest.
        elements: The largest buffer must have more than this (256 such blocks) …
        most_elements: … and no more than this.
        combined: A task is a reduction where its largest buffer has so many times the elements that are written.
        depth: Deepest nesting of loops of a task that has one; more would take too long.
        reference_seconds: A build of the C that takes longer ends the attempt: the task has no large case.
        seconds: Of a candidate's run; one that is slower has the benefit of the doubt.
    """

    size: int = 1_600_001
    elements: int = 1 << 19
    most_elements: int = 1 << 21
    combined: int = 64
    depth: int = 1
    reference_seconds: float = 5.0
    seconds: float = 5.0


LARGE = LargeCase()


async def large_suite(task: Task, seed: int, wrap: Wrap | None, config: LargeCase = LARGE) -> Suite | None:
    """The large case of a task with what it must give; `None` for what is no reduction, or not legal at the size."""
    sizes = _sizes(task, config)
    if sizes is None:
        return None
    limits: Limits = replace(ORACLE_LIMITS, seconds=config.reference_seconds)
    try:
        case = await asyncio.to_thread(sized_case, task, sizes, seed)
        if not _combines(task, case, config):
            return None
        expected = await Oracle(task, wrap, limits=limits).expected([case])
    except InputRefused:
        return None
    return Suite((replace(case, hidden=True),), expected)


async def try_large(task: Task, suite: Suite, verdict: Verdict, run: Run, config: LargeCase = LARGE) -> Verdict:
    """`verdict` of a candidate that is correct so far; that of the large case, where it fails that."""
    result = await run(suite.cases, RunPlan(FIRST_POISON, seconds=config.seconds))
    if result.child.timed_out:
        return verdict
    found = judge(task, suite.cases, suite.expected, result)
    return verdict if found.correct else replace(found, passed=verdict.passed, total=verdict.total + 1)


def _combines(task: Task, case: Case, config: LargeCase) -> bool:
    written = sum(case.values[p.name].size for p in task.buffers if p.written) + bool(task.returns)
    largest = max(case.values[p.name].size for p in task.buffers)
    return config.combined * written <= largest


def _sizes(task: Task, config: LargeCase) -> Sizes | None:
    known = integers(task)
    if task.mode != "function" or not known.sizes or known.depth > config.depth:
        return None
    sizes: Sizes = dict.fromkeys(known.sizes, config.size)
    for name in known.sizes:
        bounds = bounds_of(known.ranges[name], sizes)
        if bounds is None:
            return None
        if bounds.high is not None:
            sizes[name] = min(config.size, math.floor(bounds.high))
    counts = [count_of(extent, {**dict.fromkeys(known.counts, 1), **sizes}) for extent in known.extents]
    largest = max((c for c in counts if c is not None), default=0)
    return sizes if config.elements < largest <= config.most_elements else None
