"""A/A: kernels of different length in many fresh processes each; how often the interval of like and like holds 1.

Processes of a batch start side by side, then each is timed alone. A batch holds processes of all kernels, so that slow
changes of the machine fall on all alike. What they show is worked out afterwards, on any machine:

    python -m benchmarks.gpu_study.spread results.jsonl [results-of-another-visit.jsonl ...]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.gpu_study.lab import Lab, contents_of, task_of
from benchmarks.gpu_study.record import Record
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.calibrate import Subject, time_batch
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.measure import Stopwatch
from cudaperf_agent.cuda.spread import coverage, make_spread
from cudaperf_agent.cuda.timing import TIMING

BATCH = 15
# Seconds that a batch is expected to take before one was seen.
FIRST_BATCH = 8.0
# Handed file and bytes of all its buffers: calls of some microseconds to some milliseconds on an H200.
KERNELS = (
    ("saxpy", 64 << 10),
    ("softmax_rows", 4 << 20),
    ("black_scholes", 16 << 20),
    ("gemm", 4 << 20),
    ("nbody_forces", 1 << 20),
)
CONFIG = replace(TIMING, contents=4, contents_bytes=64 << 20, deadline=30.0)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Kernels with their contents, made by the processors alone."""

    lab: Lab
    subjects: list[Subject]


async def prepare(record: Record, gpu: Gpu) -> Prepared:
    """What needs no device."""
    lab = Lab(gpu, replace(CONFIG, samples=8) if record.small else CONFIG)
    subjects = [s for s in await asyncio.gather(*(subject(record, lab, *k) for k in KERNELS)) if s is not None]
    record.say(f"A/A: {len(subjects)} kernels ready")
    return Prepared(lab, subjects)


async def run(record: Record, seconds: float, most: int, preparing: Awaitable[Prepared]) -> bool:
    """Time batches until the seconds are over; whether each kernel has `most` processes, with those of earlier runs."""
    ends = record.elapsed + seconds
    prepared = await preparing
    subjects, longest = prepared.subjects, FIRST_BATCH
    try:
        watch = await prepared.lab.stopwatch()
        batch = 0
        while subjects and record.elapsed < ends - longest and count(record, subjects) < most:
            began = record.elapsed
            await timed_batch(record, watch, subjects, batch)
            longest = max(record.elapsed - began, 0.8 * longest) if batch else record.elapsed - began
            batch += 1
    finally:
        await prepared.lab.aclose()
    report(record, ("disjoint",))  # the rest takes longer than the device should be held for
    return count(record, subjects) >= most


async def subject(record: Record, lab: Lab, name: str, size_bytes: int) -> Subject | None:
    """One kernel of the study, or a row that says why not."""
    try:
        task = await task_of(name)
        source = generate(task).variants[0].source
        library, contents = await asyncio.gather(
            lab.library(task, source), contents_of(task, lab.timing, 32 << 10 if record.small else size_bytes, 0.2)
        )
        return Subject(name, task, library, contents)
    except Exception as error:  # noqa: BLE001 - the other kernels go on
        record.add("aa_missing", kernel=name, error=f"{type(error).__name__}: {error}")
        return None


def count(record: Record, subjects: list[Subject]) -> int:
    """Processes of the kernel that has the fewest."""
    rows = record.rows("aa")
    return min(sum(bool(r["kernel"] == s.name) for r in rows) for s in subjects)


async def timed_batch(record: Record, watch: Stopwatch, subjects: list[Subject], batch: int) -> None:
    """Start a batch of processes, then time one after the other."""
    done = await time_batch(watch, [subjects[i % len(subjects)] for i in range(BATCH)])
    for subject, timed in done.found:
        row: dict[str, Any] = {"kernel": subject.name, "case": subject.contents.cases[0].name, "batch": batch}
        if timed.timing is None:
            record.add("aa_failed", status=str(timed.status), message=timed.message, clocks=timed.clocks, **row)
        else:
            record.add("aa", samples=timed.timing.samples, cold=timed.timing.cold, clocks=timed.clocks, **row)
    record.say(f"A/A batch {batch}: {done.start_seconds:.1f} s to start {BATCH}, {done.time_seconds:.1f} s to time")


def report(
    record: Record, ways: tuple[str, ...] = ("disjoint", "all", "crosswise"), others: Sequence[Record] = ()
) -> None:
    """Spread and coverage, of all processes and crosswise: measured on one half, tried on the other.

    Processes of `others` count, too: slices of one study. Pairs that share no process are neighbours in time.
    """
    kernels: dict[str, list[list[float]]] = {}
    for row in [row for one in (record, *others) for row in one.rows("aa")]:
        kernels.setdefault(row["kernel"], []).append(row["samples"])
    spread = make_spread(list(kernels.values()))
    record.add("aa_spread", points=[asdict(p) for p in spread.points], kernels=list(kernels))
    halves = [make_spread([p[offset::2] for p in kernels.values()]) for offset in (0, 1)]
    totals = {way: [0, 0] for way in ways}
    for name, processes in kernels.items():
        for way in ways:
            if way == "crosswise":
                parts = [coverage(processes[1 - offset :: 2], halves[offset], most=150) for offset in (0, 1)]
            else:
                parts = [coverage(processes, spread, disjoint=way == "disjoint")]
            pairs, covered = sum(c.pairs for c in parts), sum(c.covered for c in parts)
            totals[way][0] += pairs
            totals[way][1] += covered
            record.add("aa_coverage", kernel=name, way=way, pairs=pairs, covered=covered, width=parts[0].width)
    for way, (pairs, covered) in totals.items():
        record.add("aa_coverage", kernel="all kernels", way=way, pairs=pairs, covered=covered)
        record.say(f"A/A {way}: {covered} of {pairs} pairs, {covered / max(1, pairs):.1%}")


if __name__ == "__main__":
    files = [Record(Path(name), 0.0) for name in sys.argv[1:]]
    report(files[0], others=files[1:])
