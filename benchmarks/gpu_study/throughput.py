"""How many verdicts a minute, cold compiles included, over mixed candidates, and where the time goes.

Correctness first, then timed verdicts: fully suspicious, the same by the device's times alone, as a search may do it,
and with trust in our own generator. What is made once per task (its tests, timed contents, baselines) is made before
the clock starts, and has rows of its own; a first line of each source makes every compile a cold one. A way that its
seconds cut short has a row too: what was judged by then.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.gpu_study.lab import task_of
from benchmarks.gpu_study.record import Record
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.baselines import ReferenceConfig
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.timing import TIMING
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.standby import StandbyConfig
from cudaperf_agent.tasks.model import Task
from tests.cuda.mutants.mutate import chosen, mutants_of

TASKS = ("saxpy", "softmax_rows", "jacobi2d", "conv2d_same", "histogram", "rgb_to_gray", "gemm", "black_scholes")
TIMED_TASKS = ("saxpy", "softmax_rows", "rgb_to_gray")
CANDIDATES = 64
TIMED = 24
OWN = 32
SMALL_COUNT = 6
BROKEN_EVERY = 4
# How the seconds that are left are shared by the ways that are left.
SHARES = {"correctness": 18.0, "timed": 32.0, "timed, device": 18.0, "timed, own": 14.0}
# Of the part's seconds, kept for what ends it.
MARGIN = 3.0
CONFIG = VerifierConfig(
    timing=replace(TIMING, contents_bytes=192 << 20),
    references=ReferenceConfig(samples=3, seconds=0.5),
    tasks_at_hand=4,
    standby=StandbyConfig(waiting=12),
    also_emulate=False,
    trace=False,
)
Judge = Callable[[Task, str], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One to judge."""

    task: Task
    source: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is made once per task, by the processors alone, before the device is needed: it may be made beside others.

    Attributes:
        tasks: By name.
        maker: A verifier that made the timed contents and the tests, for others to take them from.
    """

    tasks: dict[str, Task]
    maker: Verifier


def configured(record: Record) -> VerifierConfig:
    """The numbers, or those of a rehearsal."""
    if not record.small:
        return CONFIG
    timing = replace(CONFIG.timing, size_bytes=1 << 18, contents_bytes=1 << 20, contents=3, samples=6, whole_samples=3)
    return replace(CONFIG, timing=timing, standby=StandbyConfig(waiting=2, starting=2))


async def prepare(record: Record, gpu: Gpu) -> Prepared:
    """Tests of all tasks, and contents of those that are timed; one row each, with the seconds."""
    tasks = dict(zip(TASKS, await asyncio.gather(*(task_of(name) for name in TASKS)), strict=True))
    maker = Verifier(configured(record), gpu=gpu)
    clock = time.monotonic

    async def tests(name: str) -> None:
        started = clock()
        await maker._suite(tasks[name], False)
        record.add("preparation", what="tests", task=name, seconds=round(clock() - started, 2))

    async def contents(name: str) -> None:
        started = clock()
        made = await maker._measuring.contents(tasks[name])
        row = {"bytes": made.bytes, "sets": len(made.cases), "case": made.cases[0].name}
        record.add("preparation", what="timed contents", task=name, seconds=round(clock() - started, 2), **row)

    await asyncio.gather(*(tests(name) for name in TASKS))
    await asyncio.gather(*(contents(name) for name in TIMED_TASKS))
    return Prepared(tasks, maker)


async def run(record: Record, gpu: Gpu, seconds: float, preparing: Awaitable[Prepared]) -> bool:
    """All ways, each within its share of the seconds, but those that an earlier run has done whole.

    What is cut short has a row that says how far it came. Returns whether all are whole.
    """
    ends = record.elapsed + max(0.5 * seconds, seconds - MARGIN)
    prepared = await preparing
    tasks, config = prepared.tasks, configured(record)
    count, timed_count, own_count = (SMALL_COUNT,) * 3 if record.small else (CANDIDATES, TIMED, OWN)
    timed_tasks = {n: tasks[n] for n in TIMED_TASKS}
    ways = {
        "correctness": (config, mixed(tasks, count)),
        "timed": (config, mixed(timed_tasks, timed_count, broken=False)),
        "timed, device": (replace(config, whole="chosen"), mixed(timed_tasks, timed_count, broken=False)),
        "timed, own": (replace(config, trust="own"), mixed(timed_tasks, own_count, broken=False)),
    }
    wanted = [way for way in ways if way not in whole(record)]
    if wanted and wanted != ["correctness"]:
        await baselines(record, prepared)
    for number, way in enumerate(wanted):
        numbers, candidates = ways[way]
        share = SHARES[way] / sum(SHARES[w] for w in wanted[number:])
        await judged(record, gpu, way, numbers, candidates, prepared, share * (ends - record.elapsed))
    if ends - record.elapsed > 0:
        await starts(record, gpu, config)
    return whole(record) >= set(ways)


def whole(record: Record) -> set[str]:
    """Ways whose candidates were all judged, also in earlier runs."""
    return {r["way"] for r in record.rows("throughput") if not r.get("cut", r["judged"] < r["candidates"])}


def mixed(tasks: dict[str, Task], count: int, *, broken: bool = True) -> list[Candidate]:
    """Variants of all tasks in turn, every fourth with a fault; the same again if there are too few."""
    queues = []
    for name, task in tasks.items():
        sources = [v.source for v in generate(task).variants]
        faulty = [m.source for m in chosen(mutants_of(name, sources[0]))][: len(sources)] if broken else []
        queues.append([(task, s, f) for s, f in zip(sources, faulty or sources, strict=False)])
    found: list[Candidate] = []
    while len(found) < count:
        for queue in queues:
            task, source, faulty_source = queue[(len(found) // len(queues)) % len(queue)]
            use_faulty = broken and len(found) % BROKEN_EVERY == BROKEN_EVERY - 1
            text = faulty_source if use_faulty else source
            found.append(Candidate(task, f"// candidate {len(found)}\n{text}"))
    return found[:count]


def cold(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same under a first line that no compile has seen."""
    stamp = time.time_ns()
    return [replace(c, source=f"// {stamp}\n{c.source}") for c in candidates]


async def baselines(record: Record, prepared: Prepared) -> None:
    """What timed candidates are compared with, of each timed task."""
    measuring = prepared.maker._measuring
    watch = await measuring.stopwatch()

    async def one(name: str) -> None:
        started, task = record.elapsed, prepared.tasks[name]
        contents = await measuring.contents(task)
        await measuring._baselines.get(task.digest, lambda: measuring._time_baselines(task, contents, watch))
        record.add("preparation", what="baselines", task=name, seconds=round(record.elapsed - started, 2))

    await asyncio.gather(*(one(name) for name in TIMED_TASKS))


async def judged(
    record: Record,
    gpu: Gpu,
    way: str,
    config: VerifierConfig,
    candidates: Sequence[Candidate],
    prepared: Prepared,
    seconds: float,
) -> None:
    """All candidates at once, tested, and timed but for correctness."""
    ends = record.elapsed + seconds
    verifier, made = Verifier(config, gpu=gpu), prepared.maker
    verifier._suites = made._suites
    verifier._measuring._contents = made._measuring._contents
    verifier._measuring._baselines = made._measuring._baselines
    tested: list[float] = []

    async def judge(task: Task, source: str) -> Verdict:
        verdict = await verifier.test(task, source)
        tested.append(time.monotonic())
        return verdict if way == "correctness" else await verifier.measure(task, source, verdict)

    try:
        await filled(record, verifier, way)  # a pool that was never asked has nothing ready
        if way != "correctness":
            await verifier._measuring.stopwatch()
        await clocked(record, way, cold(candidates), judge, tested, ends - record.elapsed)
    finally:
        await verifier.aclose()


async def starts(record: Record, gpu: Gpu, config: VerifierConfig) -> None:
    """How long the device takes to start processes that ask it for fewer channels each."""
    verifier = Verifier(config, gpu=gpu)
    verifier._standby.env = {**verifier._standby.env, "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    try:
        await filled(record, verifier, "one connection each")
    finally:
        await verifier.aclose()


async def filled(record: Record, verifier: Verifier, way: str) -> None:
    """All waiting processes ready; one row says how long the device takes to start them."""
    started = record.elapsed
    await (await verifier._standby.take()).discard()
    first = record.elapsed - started
    await asyncio.wait(verifier._standby._ready, timeout=10.0)
    processes, config = len(verifier._standby._ready) + 1, verifier.place.config.standby
    seconds = record.elapsed - started
    times = {"first_seconds": round(first, 2), "seconds": round(seconds, 2)}
    record.add("standby", way=way, processes=processes, at_once=config.starting, **times)
    record.say(f"{processes} processes are ready after {seconds:.1f} s, the first after {first:.1f} s")


async def clocked(
    record: Record, way: str, candidates: Sequence[Candidate], judge: Judge, tested: list[float], seconds: float
) -> None:
    """One row: verdicts a minute, statuses, and seconds by phase summed over candidates; also if it is cancelled.

    Args:
        record: Where the row goes.
        way: Its name.
        candidates: All of them, at once.
        judge: Judges one.
        tested: When a test ended, by the monotonic clock, as `judge` notes it.
        seconds: Who is not judged by then does not count.
    """
    started = time.monotonic()
    ended: list[tuple[float, Verdict]] = []

    async def one(candidate: Candidate) -> None:
        verdict = await judge(candidate.task, candidate.source)
        ended.append((time.monotonic() - started, verdict))

    jobs = [asyncio.create_task(one(c)) for c in candidates]
    try:
        await asyncio.wait(jobs, timeout=max(1.0, seconds))
    finally:
        cut = not all(job.done() for job in jobs)
        wall = time.monotonic() - started if cut or not ended else ended[-1][0]
        failed = [repr(j.exception())[:300] for j in jobs if j.done() and not j.cancelled() and j.exception()]
        for job in jobs:
            job.cancel()
        row = _row(way, len(candidates), ended, wall)
        more = {"cut": cut, "exceptions": failed[:3], "tested": [round(t - started, 2) for t in tested]}
        record.add("throughput", **row, **more)
        record.say(f"{way}: {len(ended)} of {len(candidates)} in {wall:.1f} s, {60 * len(ended) / wall:.0f} a minute")


def _row(way: str, candidates: int, ended: Sequence[tuple[float, Verdict]], wall: float) -> dict[str, Any]:
    phases: Counter[str] = Counter()
    for _, verdict in ended:
        phases.update(verdict.seconds)
        for clocks in verdict.clocks.values():
            if isinstance(clocks, dict):
                phases.update({k: v for k, v in clocks.items() if k in ("stage_seconds", "calls_seconds")})
    device = [clocks for _, v in ended if isinstance(clocks := v.clocks.get("device"), dict)]
    return {
        "way": way,
        "candidates": candidates,
        "judged": len(ended),
        "wall_seconds": wall,
        "per_minute": 60 * len(ended) / wall,
        "statuses": dict(Counter(str(v.status) for _, v in ended)),
        "phase_seconds": {k: round(v, 2) for k, v in phases.items()},
        "ended": [round(e, 2) for e, _ in ended],
        "buffer_bytes": sorted({v.profile.get("timed_bytes", 0) for _, v in ended}),
        "clocks": device[:8],
        "messages": sorted({v.message[:120] for _, v in ended if not v.correct})[:12],
    }
