"""A measured verdict: times of the candidate and of its baselines, speedups with intervals, share of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.gpu import Gpu, read_clocks
from cudaperf_agent.cuda.statistics import speedup
from cudaperf_agent.cuda.timing import Contents, Timed, TimingConfig, time_candidate
from cudaperf_agent.cuda.timing_process import TimedKind
from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.model import Task

NAIVE = "naive CUDA"
C_ONE_CORE = "C -O3 -march=native, one core"
C_END_TO_END = f"{C_ONE_CORE}, copies included"


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
    """

    timer: Path
    config: TimingConfig
    l2_bytes: int = 0
    wrap: Wrap | None = None
    env: dict[str, str] | None = None
    clocks: Callable[[], dict[str, Any]] = read_clocks

    async def time(self, library: Path, kind: TimedKind, task: Task, contents: Contents) -> Timed:
        """Time it in a fresh process, off the event loop."""
        return await asyncio.to_thread(
            time_candidate,
            self.timer,
            library,
            kind,
            task,
            contents,
            config=self.config,
            l2_bytes=self.l2_bytes,
            wrap=self.wrap,
            env=self.env,
        )


@dataclass(frozen=True, slots=True)
class Baselines:
    """Times that a candidate is compared with; each may be missing."""

    naive: Timing | None = None
    reference: Timing | None = None


async def measured_verdict(
    verdict: Verdict,
    library: Path,
    task: Task,
    contents: Contents,
    watch: Stopwatch,
    baselines: Baselines,
    gpu: Gpu | None,
) -> Verdict:
    """`verdict` of a correct candidate with its times; of another status where the timed calls show it wrong."""
    before = await asyncio.to_thread(watch.clocks)
    kinds: tuple[TimedKind, ...] = ("device", "end_to_end") if verdict.form == "device" else ("end_to_end",)
    timings: list[Timing] = []
    clocks: dict[str, Any] = {"before": before}
    for kind in kinds:
        timed = await watch.time(library, kind, task, contents)
        clocks[kind] = timed.clocks
        if timed.timing is None:
            return replace(verdict, status=timed.status, message=timed.message, clocks=clocks)
        timings.append(timed.timing)
    clocks["after"] = await asyncio.to_thread(watch.clocks)
    main = timings[0]
    if gpu is not None and _impossible(main, task, contents, gpu):
        message = f"{main.median:.3g} s is less than the memory needs to take the outputs"
        return replace(verdict, status=Status.UNSTABLE, message=message, clocks=clocks)
    timings += [t for t in (baselines.naive, baselines.reference) if t is not None]
    return replace(
        verdict,
        measured=True,
        timings=tuple(timings),
        speedups=tuple(_speedups(main, timings, baselines)),
        profile={**verdict.profile, **_profile(timings, contents, gpu)},
        clocks=clocks,
    )


def _speedups(main: Timing, timings: list[Timing], baselines: Baselines) -> list[Speedup]:
    found: list[Speedup] = []
    if baselines.naive is not None and baselines.naive.samples and main.kind == "device":
        found.append(speedup(NAIVE, baselines.naive.samples, main.samples))
    reference = baselines.reference
    if reference is not None and reference.samples:
        if main.kind == "device":
            found.append(speedup(C_ONE_CORE, reference.samples, main.samples))
        whole = next((t for t in timings if t.kind == "end_to_end"), None)
        if whole is not None:
            found.append(speedup(C_END_TO_END, reference.samples, whole.samples))
    return found


def _written_bytes(task: Task, contents: Contents) -> int:
    return sum(contents.cases[0].values[p.name].nbytes for p in task.buffers if p.written)


def _impossible(timing: Timing, task: Task, contents: Contents, gpu: Gpu) -> bool:
    """Outputs far larger than the L2 cannot be written faster than the memory bus could, at its datasheet's rate."""
    written = _written_bytes(task, contents)
    return written > 4 * gpu.l2_bytes and timing.median < written / gpu.datasheet_bandwidth


def _profile(timings: list[Timing], contents: Contents, gpu: Gpu | None) -> dict[str, Any]:
    by_kind = {t.kind: t.median for t in timings}
    found: dict[str, Any] = {"timed_bytes": contents.bytes}
    if "device" in by_kind and by_kind["device"] > 0:
        rate = contents.bytes / by_kind["device"]
        found["bytes_per_second"] = rate
        if gpu is not None and gpu.datasheet_bandwidth:
            found["share_of_datasheet_bandwidth"] = rate / gpu.datasheet_bandwidth
        if by_kind.get("end_to_end"):
            found["copies_and_allocation_share"] = max(0.0, 1.0 - by_kind["device"] / by_kind["end_to_end"])
    return found
