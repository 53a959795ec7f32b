"""How many verdicts a minute, cold compiles included, over mixed candidates, and where the time goes.

Correctness first, then timed verdicts, fully suspicious and with trust in our own generator. What is made once per task
(its tests, timed contents, baselines) is made before the clock starts, and has rows of its own; a first line of each
source makes every compile a cold one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

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
SMALL_COUNT = 6
BROKEN_EVERY = 4
# Of the seconds that there are.
SHARES = {"correctness": 0.34, "timed": 0.44, "timed, own": 0.22}
CONFIG = VerifierConfig(
    timing=replace(TIMING, contents_bytes=192 << 20),
    references=ReferenceConfig(samples=3),
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
    ends = record.elapsed + seconds
    prepared = await preparing
    seconds = ends - record.elapsed
    tasks, config = prepared.tasks, configured(record)
    count, timed_count = (SMALL_COUNT, SMALL_COUNT) if record.small else (CANDIDATES, TIMED)
    if "correctness" not in whole(record):
        candidates = mixed(tasks, count)
        await correctness(record, gpu, "correctness", config, candidates, prepared, SHARES["correctness"] * seconds)
    timed = mixed({n: tasks[n] for n in TIMED_TASKS}, timed_count, broken=False)
    before = prepared.maker
    # Other numbers of processes that start at once, to see what the device makes of them.
    ways = {
        "timed": replace(config, standby=replace(config.standby, starting=4)),
        "timed, own": replace(config, standby=replace(config.standby, starting=14), trust="own"),
    }
    for way, numbers in ways.items():
        if way not in whole(record):
            left = ends - record.elapsed
            last = way == list(ways)[-1]
            before = await measured(record, gpu, way, numbers, timed, before, left if last else SHARES[way] * seconds)
    return whole(record) >= {"correctness", *ways}


def whole(record: Record) -> set[str]:
    """Ways whose candidates were all judged, also in earlier runs."""
    return {row["way"] for row in record.rows("throughput") if row["judged"] == row["candidates"]}


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


async def correctness(
    record: Record,
    gpu: Gpu,
    way: str,
    config: VerifierConfig,
    candidates: Sequence[Candidate],
    prepared: Prepared,
    seconds: float,
) -> None:
    """Visible cases of all candidates at once."""
    verifier = Verifier(config, gpu=gpu)
    verifier._suites = prepared.maker._suites
    ends = record.elapsed + seconds
    try:
        await filled(record, verifier)  # a pool that was never asked has nothing ready
        await clocked(record, way, cold(candidates), verifier.test, ends - record.elapsed)
    finally:
        await verifier.aclose()


async def filled(record: Record, verifier: Verifier) -> None:
    """All waiting processes ready; one row says how long the device takes to start them."""
    started = record.elapsed
    await (await verifier._standby.take()).discard()
    first = record.elapsed - started
    await asyncio.wait(verifier._standby._ready, timeout=10.0)
    processes, config = len(verifier._standby._ready) + 1, verifier.place.config.standby
    seconds = record.elapsed - started
    record.add("standby", processes=processes, at_once=config.starting, first_seconds=first, seconds=seconds)
    record.say(f"{processes} processes are ready after {seconds:.1f} s, the first after {first:.1f} s")


async def measured(
    record: Record,
    gpu: Gpu,
    way: str,
    config: VerifierConfig,
    candidates: Sequence[Candidate],
    before: Verifier,
    seconds: float,
) -> Verifier:
    """Tests and times; what is made once per task is made by a candidate that does not count, or was made `before`."""
    verifier = Verifier(config, gpu=gpu)
    verifier._suites = before._suites
    verifier._measuring._contents = before._measuring._contents
    verifier._measuring._baselines = before._measuring._baselines
    ends = record.elapsed + seconds

    async def judged(task: Task, source: str) -> Verdict:
        return await verifier.measure(task, source, await verifier.test(task, source))

    async def first(candidate: Candidate) -> None:
        verdict = await judged(candidate.task, f"// first\n{candidate.source}")
        waited = round(verdict.seconds.get("baselines", 0.0), 2)
        record.add("preparation", what=f"baselines, {way}", task=candidate.task.name, seconds=waited)

    try:
        await filled(record, verifier)
        firsts = {c.task.digest: c for c in reversed(candidates)}.values()
        await asyncio.wait_for(asyncio.gather(*(first(c) for c in firsts)), max(1.0, ends - record.elapsed))
        record.say(f"{way}: baselines of {len(firsts)} tasks took {seconds - (ends - record.elapsed):.1f} s")
        await clocked(record, way, cold(candidates), judged, ends - record.elapsed)
    except TimeoutError:
        record.say(f"{way}: no time was left after what is made once per task")
    finally:
        await verifier.aclose()
    return verifier


async def clocked(record: Record, way: str, candidates: Sequence[Candidate], judge: Judge, seconds: float) -> None:
    """One row: verdicts a minute, statuses, and seconds by phase summed over candidates."""
    started = time.monotonic()
    ended: list[tuple[float, Verdict]] = []

    async def one(candidate: Candidate) -> None:
        verdict = await judge(candidate.task, candidate.source)
        ended.append((time.monotonic() - started, verdict))

    jobs = [asyncio.create_task(one(c)) for c in candidates]
    try:
        done, _ = await asyncio.wait(jobs, timeout=max(1.0, seconds))
    finally:
        for job in jobs:
            job.cancel()
    wall = ended[-1][0] if ended else seconds
    phases: Counter[str] = Counter()
    for _, verdict in ended:
        phases.update(verdict.seconds)
        for clocks in verdict.clocks.values():
            if isinstance(clocks, dict):
                phases.update({k: v for k, v in clocks.items() if k in ("stage_seconds", "calls_seconds")})
    row = {
        "way": way,
        "candidates": len(candidates),
        "judged": len(ended),
        "wall_seconds": wall,
        "per_minute": 60 * len(ended) / wall,
        "statuses": dict(Counter(str(v.status) for _, v in ended)),
        "exceptions": [repr(j.exception())[:300] for j in done if not j.cancelled() and j.exception()][:3],
        "phase_seconds": {k: round(v, 2) for k, v in phases.items()},
        "ended": [round(e, 2) for e, _ in ended],
        "buffer_bytes": sorted({v.profile.get("timed_bytes", 0) for _, v in ended}),
        "clocks": [v.clocks.get("device", {}) for _, v in ended][:8],
        "messages": sorted({v.message[:120] for _, v in ended if not v.correct})[:12],
    }
    record.add("throughput", **row)
    record.say(f"{way}: {len(ended)} of {len(candidates)} in {wall:.1f} s, {60 * len(ended) / wall:.0f} a minute")
