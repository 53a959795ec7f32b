"""Calibrates the machine's GPU: what it can do at most, and how much fresh processes that run the same code differ.

Both are kept per device and driver in the cache folder, and used by every later measurement: the ceilings for shares of
the machine and for times that are too short to be true, the spread for the intervals of speedups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudaperf_agent.cuda.baselines import make_contents, timed_case
from cudaperf_agent.cuda.building import Built, build_candidate
from cudaperf_agent.cuda.c_baselines import native_baseline
from cudaperf_agent.cuda.calibration_kernels import KERNELS, CalibrationKernel
from cudaperf_agent.cuda.ceilings import Ceilings, ceilings_file, device_ceilings
from cudaperf_agent.cuda.measure import Stopwatch
from cudaperf_agent.cuda.measuring import Measuring
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.spread import Coverage, Spread, coverage, keep_spread, make_spread, spread_file
from cudaperf_agent.cuda.timing import TIMING, Contents, Timed, TimedRun, TimingConfig
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CalibrationConfig:
    """Numbers of a calibration.

    Attributes:
        kernels: What is timed.
        processes: Of each kernel.
        batch: Processes that start side by side, before they are timed one by one.
        seconds: No batch is begun that would end later than this, as long as the longest yet.
        reference_seconds: A size is not made larger once the C takes this long.
        timing: Numbers of each process.
    """

    kernels: tuple[CalibrationKernel, ...] = KERNELS
    processes: int = 24
    batch: int = 15
    seconds: float = 120.0
    reference_seconds: float = 0.2
    timing: TimingConfig = field(
        default_factory=lambda: replace(TIMING, contents=4, contents_bytes=64 << 20, deadline=30.0)
    )


CALIBRATION = CalibrationConfig()


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel, ready to be timed."""

    name: str
    task: Task
    library: Path
    contents: Contents


@dataclass(frozen=True, slots=True)
class Batch:
    """What each of some processes gave, in order, and the seconds of starting and of timing them."""

    found: tuple[tuple[Subject, Timed], ...]
    start_seconds: float
    time_seconds: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured.

    Attributes:
        device: Its name.
        ceilings: What it can do at most.
        spread: How much processes differ, by how long a call takes; without points where too few were timed.
        pairs: How often the interval of a pair of the same kernel's processes, each in one pair, contains 1.
        processes: That were timed, by kernel.
        files: Where it is kept.
    """

    device: str
    ceilings: Ceilings
    spread: Spread
    pairs: Coverage
    processes: dict[str, int]
    files: tuple[Path, ...]


async def calibrate(place: Workplace, say: Say, config: CalibrationConfig = CALIBRATION) -> Calibration:
    """Measure the device of `place`, with nothing else on it, and keep what was found.

    Args:
        place: Tools and the device.
        say: Called with a sentence after each step.
        config: Numbers.

    Raises:
        BackendUnavailable: There is no GPU, or it cannot be measured.
    """
    gpu = place.gpu
    if gpu is None:
        raise no_gpu()
    clock = asyncio.get_running_loop().time
    started = clock()
    async with place.alone():
        wrap = place.sandbox.for_gpu().wrap
        ceilings = await device_ceilings(place.nvcc, gpu, wrap=wrap, env=gpu_environment(), again=True)
    say(f"ceilings of {gpu.name} measured, in {clock() - started:.1f} s; kept in {ceilings_file(gpu)}")
    measuring = Measuring(place, lambda task, source: build_candidate(place, task, source))
    try:
        watch = replace(await measuring.stopwatch(), config=config.timing)
        subjects = await asyncio.gather(*(_subject(place, kernel, config) for kernel in config.kernels))
        say(f"{len(subjects)} kernels compiled, their contents made, {clock() - started:.1f} s")
        samples = await _sampled(watch, place, subjects, started + config.seconds, config, say)
    finally:
        await measuring.aclose()
    spread = make_spread(list(samples.values()))
    files = [ceilings_file(gpu)]
    if spread.points:
        await asyncio.to_thread(keep_spread, spread, gpu)
        files.append(spread_file(gpu))
        say(f"differences between processes kept in {spread_file(gpu)}")
    else:
        say("too few processes were timed to tell how much they differ: nothing is kept of that")
    pairs = await asyncio.to_thread(_pairs, samples, spread)
    counts = {name: len(processes) for name, processes in samples.items()}
    return Calibration(gpu.name, ceilings, spread, pairs, counts, tuple(files))


def no_gpu() -> BackendUnavailable:
    """Why a machine without one is not calibrated."""
    return BackendUnavailable(
        "there is no GPU here, so there is nothing to calibrate",
        hint="run this on the machine whose GPU times candidates: what it finds is kept per device and driver",
    )


async def _subject(place: Workplace, kernel: CalibrationKernel, config: CalibrationConfig) -> Subject:
    from cudaperf_agent.codegen.variants import generate

    wrap = place.sandbox.wrap
    task = await prepare(load_task(source=kernel.c), wrap=wrap)
    numbers = replace(config.timing, size_bytes=kernel.size_bytes, reference_seconds=config.reference_seconds)
    case = await timed_case(task, await native_baseline(task), numbers, wrap)
    contents = await make_contents(task, Oracle(task, wrap), case, numbers)
    built = await build_candidate(place, task, generate(task).variants[0].source)
    if not isinstance(built, Built) or built.compiled.artefact is None:
        raise BackendUnavailable(f"{kernel.name}, a kernel to calibrate with, does not compile: {built}")
    return Subject(kernel.name, task, built.compiled.artefact, contents)


async def _sampled(
    watch: Stopwatch,
    place: Workplace,
    subjects: Sequence[Subject],
    until: float,
    config: CalibrationConfig,
    say: Say,
) -> dict[str, list[tuple[float, ...]]]:
    """Samples of processes by kernel. A batch holds all kernels, so that slow changes of the machine fall on all."""
    samples: dict[str, list[tuple[float, ...]]] = {s.name: [] for s in subjects}
    clock = asyncio.get_running_loop().time
    wanted = [s for _ in range(config.processes) for s in subjects]
    longest = 0.0
    for start in range(0, len(wanted), config.batch):
        began = clock()
        if began + longest > until:
            say(f"stopped after {start} of {len(wanted)} processes: the time is over")
            break
        async with place.alone():
            batch = await time_batch(watch, wanted[start : start + config.batch])
        for subject, timed in batch.found:
            if timed.timing is None:
                say(f"{subject.name}: {timed.status}: {timed.message}")
            else:
                samples[subject.name].append(timed.timing.samples)
        longest = max(longest, clock() - began)
        done = min(start + config.batch, len(wanted))
        say(
            f"{done} of {len(wanted)} processes; the last {len(batch.found)} took {batch.start_seconds:.1f} s to start "
            f"and {batch.time_seconds:.1f} s to time"
        )
    return samples


async def time_batch(watch: Stopwatch, subjects: Sequence[Subject]) -> Batch:
    """Start a fresh process for each, side by side, and then time one after the other; every output is checked."""
    runs = [watch.run(s.library, "device", s.task, s.contents) for s in subjects]
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        await asyncio.gather(*(asyncio.to_thread(run.stage) for run in runs))
        staged = clock()
        timed = [await asyncio.to_thread(run.calls) for run in runs]
        ended = clock()
        checked = await asyncio.gather(*(asyncio.to_thread(_checked, r, t) for r, t in zip(runs, timed, strict=True)))
        return Batch(tuple(zip(subjects, checked, strict=True)), staged - began, ended - staged)
    finally:
        await asyncio.gather(*(asyncio.to_thread(run.close) for run in runs))


def _checked(run: TimedRun, timed: Timed) -> Timed:
    return run.checker.checked(timed)


def _pairs(samples: dict[str, list[tuple[float, ...]]], spread: Spread) -> Coverage:
    parts = [coverage(processes, spread, disjoint=True) for processes in samples.values()]
    widths = [p.width for p in parts if p.pairs]
    return Coverage(sum(p.pairs for p in parts), sum(p.covered for p in parts), max(widths) if widths else 0.0)
