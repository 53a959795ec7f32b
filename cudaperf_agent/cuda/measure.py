"""A measured verdict: times of the candidate and of its baselines, speedups with intervals, share of the machine."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cudaperf_agent.cuda.ceilings import Ceilings, least_seconds
from cudaperf_agent.cuda.gpu import Gpu, read_clocks
from cudaperf_agent.cuda.share import profile_of
from cudaperf_agent.cuda.spread import UNKNOWN, Spread
from cudaperf_agent.cuda.statistics import speedup
from cudaperf_agent.cuda.timing import Contents, Timed, TimedRun, TimingConfig
from cudaperf_agent.cuda.timing_process import TimedKind
from cudaperf_agent.cuda.trace import Trace
from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.model import Task

NAIVE = "naive CUDA"
C_ONE_CORE = "gcc -O3 -march=native"
C_FAST_MATH = f"{C_ONE_CORE} -ffast-math"
C_OPENMP = f"{C_ONE_CORE} -fopenmp"
T = TypeVar("T", bound=Timed)
_OLD_NAMES = {"C -O3 -march=native, one core": C_ONE_CORE}
END_TO_END = ", copies included"
C_END_TO_END = f"{C_ONE_CORE}{END_TO_END}"


def baseline_name(stored: str) -> str:
    """The name of a baseline as it is now, of one from an older verdict."""
    for old, new in _OLD_NAMES.items():
        if stored in (old, f"{old}{END_TO_END}"):
            return stored.replace(old, new)
    return stored


def best_of_c(speedups: Sequence[Speedup]) -> Speedup | None:
    """The one over the fastest way to run the C, copies apart; `None` where there are not several to choose from."""
    of_c = [s for s in speedups if s.baseline in (C_ONE_CORE, C_FAST_MATH, C_OPENMP)]
    return min(of_c, key=lambda s: s.value) if len(of_c) > 1 else None


class Turn(Protocol):
    """Gives the device, and with `cpu` the processors, to what runs inside."""

    def __call__(self, *, cpu: bool = True) -> AbstractAsyncContextManager[None]: ...


def _at_once(*, cpu: bool = True) -> AbstractAsyncContextManager[None]:
    return nullcontext()


async def settled(measure: Callable[[], Awaitable[Sequence[T]]]) -> Sequence[T]:
    """What `measure` finds, or, where its clocks disagree, finds once more, in fresh processes.

    What the machine did to one process seldom happens to the next, and a lie is told again.
    """
    found = await measure()
    if found and found[-1].status is Status.UNSTABLE:
        found = [replace(t, clocks={**t.clocks, "attempts": 2.0}) for t in await measure()]
    return found


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """What times a library on this machine.

    Attributes:
        timer: The built ``timer.cu``.
        config: Numbers.
        l2_bytes: To flush; 0 for none.
        wrap: The sandbox, with the GPU visible.
        env: Extra environment variables.
        clocks: Reads the device's clocks.
        turn: Waits for the device.
        staged: Limits of how many candidates processes are there.
        staging: Entered where a process is started, or ended.
        tracer: The library that records what the device did, for explanation; `None` where there is no CUPTI.
        ceilings: What the device can do; `None` where that is not known.
        spread: How much processes differ on it.
    """

    timer: Path
    config: TimingConfig
    l2_bytes: int = 0
    wrap: Wrap | None = None
    env: dict[str, str] | None = None
    clocks: Callable[[], dict[str, Any]] = read_clocks
    turn: Turn = _at_once
    staged: AbstractAsyncContextManager[Any] = field(default_factory=nullcontext)
    staging: AbstractAsyncContextManager[Any] = field(default_factory=nullcontext)
    tracer: Path | None = None
    ceilings: Ceilings | None = None
    spread: Spread = UNKNOWN

    async def time(self, library: Path, kinds: Sequence[TimedKind], task: Task, contents: Contents) -> list[Timed]:
        """Time it in fresh processes, off the event loop; ends with the first kind that fails.

        The processes of all kinds start side by side, and are timed one at a time. Where several processes are asked
        for, the samples of one kind are those of all of them, in order. Where the clocks disagree all is done once
        more (`settled`).
        """
        return list(await settled(lambda: self._timed(library, kinds, task, contents)))

    async def _timed(self, library: Path, kinds: Sequence[TimedKind], task: Task, contents: Contents) -> list[Timed]:
        runs = [
            self.sampling(kind, kinds).run(library, kind, task, contents)
            for kind in kinds
            for _ in range(self.config.processes)
        ]
        async with self.staged:
            try:
                await asyncio.gather(*(self._staged(run) for run in runs))
                called = await self._called(runs)
            finally:
                await self._closed(runs)
        return await asyncio.to_thread(_checked, kinds, called)

    async def _called(self, runs: Sequence[TimedRun]) -> list[tuple[TimedRun, Timed]]:
        """The calls of all runs, one run at a time, up to the first that fails."""
        loop = asyncio.get_running_loop()
        found: list[tuple[TimedRun, Timed]] = []
        for run in runs:
            async with self.turn(cpu=run.kind == "end_to_end"):
                # In a thread that nothing else can keep busy: the machine stands still meanwhile.
                timed = await loop.run_in_executor(_caller(), run.calls)
            found.append((run, timed))
            if timed.timing is None:
                break
        return found

    def sampling(self, kind: TimedKind, kinds: Sequence[TimedKind]) -> Stopwatch:
        """The same with as many samples as `kind` gets beside the others: end-to-end calls take the longest."""
        if kind == "device" or "device" not in kinds:
            return self
        samples = min(self.config.samples, self.config.whole_samples)
        return replace(self, config=replace(self.config, samples=samples))

    async def traced(self, library: Path, kind: TimedKind, task: Task, contents: Contents) -> Trace | None:
        """What the device did in a few calls, in a process of its own; `None` where that cannot be recorded."""
        if self.tracer is None:
            return None
        run = self.run(library, kind, task, contents, self.tracer)
        async with self.staged:
            try:
                await self._staged(run)
                async with self.turn(cpu=False):
                    return await asyncio.to_thread(run.traced)
            finally:
                await self._closed([run])

    def run(
        self, library: Path, kind: TimedKind, task: Task, contents: Contents, tracer: Path | None = None
    ) -> TimedRun:
        """A fresh process, not started yet."""
        return TimedRun(
            self.timer,
            library,
            kind,
            task,
            contents,
            config=self.config,
            l2_bytes=self.l2_bytes,
            wrap=self.wrap,
            env=self.env,
            tracer=tracer,
        )

    async def _closed(self, runs: Sequence[TimedRun]) -> None:
        # What a process held on the device is given back there: not beside calls that are timed either.
        entered = False
        try:
            async with self.staging:
                entered = True
                await asyncio.to_thread(_close, runs)
        finally:
            if not entered:
                _close(runs)

    async def _staged(self, run: TimedRun) -> None:
        async with self.staging:
            await asyncio.to_thread(run.stage)


def together(parts: Sequence[Timed]) -> Timed:
    """Several processes of the same thing as one measurement."""
    first = parts[0]
    if len(parts) == 1 or first.timing is None:
        return first
    samples = tuple(s for part in parts if part.timing for s in part.timing.samples)
    note = f"{first.timing.note}, in {len(parts)} processes"
    return replace(first, timing=replace(first.timing, samples=samples, note=note, processes=len(parts)))


@lru_cache(maxsize=1)
def _caller() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="cudaperf-calls")


def _checked(kinds: Sequence[TimedKind], called: Sequence[tuple[TimedRun, Timed]]) -> list[Timed]:
    """By kind, in order and up to the first that fails: what its processes gave, if all of their outputs are right."""
    found: list[Timed] = []
    for kind in kinds:
        parts: list[Timed] = []
        for run, timed in called:
            if run.kind != kind:
                continue
            parts.append(run.with_phases(run.checker.checked(timed)))
            if parts[-1].timing is None:
                return [*found, parts[-1]]
        if parts:
            found.append(together(parts))
    return found


def _close(runs: Sequence[TimedRun]) -> None:
    for run in runs:
        run.close()


@dataclass(frozen=True, slots=True)
class Baselines:
    """Times that a candidate is compared with: of the naive CUDA, which may be missing, and of ways to run the C."""

    naive: Timing | None = None
    references: tuple[Timing, ...] = ()


async def measured_verdict(
    verdict: Verdict,
    library: Path,
    task: Task,
    contents: Contents,
    watch: Stopwatch,
    baselines: Baselines,
    gpu: Gpu | None,
    *,
    whole: bool = True,
) -> Verdict:
    """`verdict` of a correct candidate with its times; of another status where the timed calls show it wrong.

    Without `whole`, one in device form has no end-to-end times, and none is traced.
    """
    before = await asyncio.to_thread(watch.clocks)
    kinds: tuple[TimedKind, ...] = ("end_to_end",)
    if verdict.form == "device":
        kinds = ("device", "end_to_end") if whole else ("device",)
    found = await watch.time(library, kinds, task, contents)
    clocks: dict[str, Any] = {"before": before, **{k: t.clocks for k, t in zip(kinds, found, strict=False)}}
    clocks["after"] = await asyncio.to_thread(watch.clocks)
    verdict = replace(verdict, clocks=clocks)
    if found[-1].timing is None:
        return with_times(verdict, found, task, contents, watch, baselines, gpu)
    trace = await watch.traced(library, kinds[0], task, contents) if whole else None
    return with_times(verdict, found, task, contents, watch, baselines, gpu, trace)


def with_times(
    verdict: Verdict,
    found: Sequence[Timed],
    task: Task,
    contents: Contents,
    watch: Stopwatch,
    baselines: Baselines,
    gpu: Gpu | None,
    trace: Trace | None = None,
) -> Verdict:
    """`verdict` with measurements of one or two kinds, the decisive one first; the last may be a failure."""
    timings: list[Timing] = []
    for timed in found:
        if timed.timing is None:
            return replace(verdict, status=timed.status, message=timed.message)
        timings.append(timed.timing)
    main = timings[0]
    floor = _floor(task, contents, watch.ceilings, gpu)
    if main.median < floor:
        message = f"{main.median:.3g} s is less than this device needs to write the outputs, {floor:.3g} s"
        return replace(verdict, status=Status.UNSTABLE, message=message)
    if trace is not None:
        timings += trace.timings(main)
    profile = profile_of(timings, task, contents, gpu, watch.ceilings, trace, floor)
    timings += [t for t in (baselines.naive, *baselines.references) if t is not None]
    return replace(
        verdict,
        measured=True,
        timings=tuple(timings),
        speedups=tuple(_speedups(main, timings, baselines, watch.spread)),
        profile={**verdict.profile, **profile},
    )


def _speedups(main: Timing, timings: list[Timing], baselines: Baselines, spread: Spread) -> list[Speedup]:
    found: list[Speedup] = []

    def compare(name: str, reference: Timing, candidate: Timing) -> None:
        if reference.samples:
            found.append(
                speedup(
                    name,
                    reference.samples,
                    candidate.samples,
                    reference_cv=_deviation(reference, spread),
                    candidate_cv=_deviation(candidate, spread),
                )
            )

    if baselines.naive is not None and main.kind == "device":
        compare(NAIVE, baselines.naive, main)
    whole = next((t for t in timings if t.kind == "end_to_end"), None)
    for reference in baselines.references:
        if main.kind == "device":
            compare(reference.note, reference, main)
        if whole is not None:
            compare(f"{reference.note}{END_TO_END}", reference, whole)
    return found


def _deviation(timing: Timing, spread: Spread) -> float:
    """Between processes; of the C only what its own samples show, since the spread is the device's."""
    if timing.kind == "reference":
        return 0.0
    return spread.deviation(timing.median) / math.sqrt(timing.processes)


def _floor(task: Task, contents: Contents, ceilings: Ceilings | None, gpu: Gpu | None) -> float:
    written = contents.written_bytes(task)
    if gpu is None:
        return 0.0
    if ceilings is not None:
        return least_seconds(written, gpu.l2_bytes, ceilings)
    # Nothing is measured: what the memory bus could do at its datasheet's rate.
    large = written > 4 * gpu.l2_bytes and gpu.datasheet_bandwidth > 0
    return (written - gpu.l2_bytes) / gpu.datasheet_bandwidth if large else 0.0
