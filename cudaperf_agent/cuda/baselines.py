"""The size a task is timed at, its contents, and how long the C takes on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.timing import Contents, TimingConfig
from cudaperf_agent.cuda.verdict import Timing
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Argument, NativeRun, Wrap, call_native
from cudaperf_agent.execution.pinned import pinned
from cudaperf_agent.tasks.bounds import Bounds, bounds_of
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.sizes import count_of, integers
from cudaperf_agent.tasks.stub import native_arguments

_FIRST_SIZE = 64
_DOUBLINGS = 34

Place = AbstractAsyncContextManager[Any]
"""Entered for each piece of work, so that nothing computes beside what is timed."""


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """How often the C is timed.

    Attributes:
        samples: Timed calls.
        seconds: A way to run the C that takes long is called less often, so that its calls take about this together …
        fewest: … but no less often than this; the interval of a speedup tells what fewer samples are worth.
    """

    samples: int = 9
    seconds: float = 4.0
    fewest: int = 3


@dataclass(frozen=True, slots=True)
class Baseline:
    """One way of running the C.

    Attributes:
        name: As shown: ``gcc -O3 -march=native``.
        library: Built with its call stub.
        threads: OpenMP threads.
        core: The processor that it runs on; `None` for any.
    """

    name: str
    library: Path
    threads: int = 1
    core: int | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Of its process."""
        return {"OMP_NUM_THREADS": str(self.threads), "OMP_DYNAMIC": "false"}

    def wrapped(self, wrap: Wrap | None) -> Wrap | None:
        """`wrap`, on its processor."""
        return wrap if self.core is None else pinned(wrap, self.core)


async def timed_case(
    task: Task, native: Baseline, config: TimingConfig, wrap: Wrap | None, place: Place | None = None
) -> Case:
    """The case to time: sizes doubled until the buffers are as large as wanted or the C takes long enough.

    Raises:
        InputRefused: Not even the smallest size is legal.
    """
    known = integers(task)
    ceilings = {name: _ceiling(known.ranges[name].high) for name in known.sizes}
    chosen: Case | None = None
    place = place or nullcontext()
    for doubling in range(_DOUBLINGS):
        sizes = {n: min(_FIRST_SIZE << doubling, c) if c else _FIRST_SIZE << doubling for n, c in ceilings.items()}
        # Counted before anything of that size is made.
        if max((count_of(e, sizes) or 0 for e in known.extents), default=0) > config.size_bytes and chosen is not None:
            break
        try:
            async with place:
                case = await asyncio.to_thread(sized_case, task, sizes, 0)
        except InputRefused:
            if chosen is None and doubling < 4:
                continue
            break
        if _bytes(case) > config.size_bytes and chosen is not None:
            break
        async with place:
            run = await _run(task, native, [case], config.reference_seconds * 20, wrap)
        if not run.outcomes:
            break
        chosen = case
        if run.outcomes[0].seconds > config.reference_seconds or all(c and sizes[n] >= c for n, c in ceilings.items()):
            break
    if chosen is None:
        raise InputRefused(f"no size of {task.name} can be timed", where=f"{task.path}:{task.first_line}")
    return chosen


async def make_contents(
    task: Task, oracle: Oracle, case: Case, config: TimingConfig, place: Place | None = None
) -> Contents:
    """Content sets of the size of `case`, with what each must give, kept by the parent."""
    sizes = {name: int(case.values[name]) for name in integers(task).sizes}
    wanted = config.contents_bytes // max(1, _bytes(case))
    count = max(config.fewest_contents, min(config.contents, wanted))
    place = place or nullcontext()
    # A few at a time: a large size times all builds of the C would not fit in memory.
    turns = asyncio.Semaphore(config.contents_at_once)

    async def one(seed: int) -> tuple[Case, Expected, Bounds]:
        async with turns, place:
            content = replace(await asyncio.to_thread(sized_case, task, sizes, seed), name=case.name)
            expected = (await oracle.expected([content]))[0]
            return content, expected, await asyncio.to_thread(bounds_of, expected)

    made = await asyncio.gather(*(one(seed) for seed in range(1, count + 1)))
    return Contents(tuple(c for c, _, _ in made), tuple(e for _, e, _ in made), tuple(b for _, _, b in made))


async def time_reference(
    task: Task, baseline: Baseline, contents: Contents, samples: int, limits: Limits, wrap: Wrap | None
) -> Timing | None:
    """Times of the C over the contents, each first warmed by one call; `None` if it fails."""
    cases = [contents.cases[i % len(contents.cases)] for i in range(samples + 1)]
    run = await _run(task, baseline, cases, limits.seconds, wrap)
    if len(run.outcomes) < len(cases):
        return None
    seconds = [outcome.seconds for outcome in run.outcomes]
    return Timing("reference", contents.cases[0].name, tuple(seconds[1:]), seconds[0], baseline.name)


async def affordable_samples(
    task: Task, baseline: Baseline, contents: Contents, config: ReferenceConfig, limits: Limits, wrap: Wrap | None
) -> int:
    """How often the C is to be timed, by one call of it that is not."""
    run = await _run(task, baseline, contents.cases[:1], limits.seconds, wrap)
    seconds = run.outcomes[0].seconds if run.outcomes else 0.0
    most = int(config.seconds / seconds) if seconds > 0 else config.samples
    return min(config.samples, max(config.fewest, most))


async def _run(task: Task, baseline: Baseline, cases: Sequence[Case], seconds: float, wrap: Wrap | None) -> NativeRun:
    return await call_native(
        baseline.library,
        [_timed_only(native_arguments(task, case)) for case in cases],
        limits=Limits(seconds=max(30.0, seconds), memory=16 << 30, file_bytes=16 << 30),
        env=baseline.environment,
        wrap=baseline.wrapped(wrap),
    )


def _timed_only(arguments: list[Argument]) -> list[Argument]:
    """The same, with nothing sent back: hundreds of megabytes that nobody looks at."""
    return [replace(argument, returned=False) for argument in arguments]


def _bytes(case: Case) -> int:
    return sum(v.nbytes for v in case.values.values())


def _ceiling(text: str | None) -> int | None:
    """A constant upper end of a size's range; an end that depends on other sizes is left to `sized_case`."""
    try:
        return int(text, 0) if text is not None else None
    except ValueError:
        return None
