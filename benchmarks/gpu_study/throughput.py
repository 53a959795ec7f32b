"""How many verdicts a minute, cold compiles included, over mixed candidates, and where the time goes.

Correctness first, without and with the emulator's checker beside the GPU; then timed verdicts, fully suspicious and
with trust in our own generator. What is made once per task (its tests, timed contents, baselines) is made before the
clock starts; a first line of each source makes every compile a cold one.
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
BROKEN_EVERY = 4
CONFIG = VerifierConfig(
    timing=replace(TIMING, contents_bytes=192 << 20),
    reference_samples=3,
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


async def run(record: Record, gpu: Gpu | None, seconds: float) -> None:
    """All four ways, as far as the seconds allow."""
    ends = record.elapsed + seconds
    tasks = dict(zip(TASKS, await asyncio.gather(*(task_of(name) for name in TASKS)), strict=True))
    count = CANDIDATES if gpu is not None else 8
    candidates = mixed(tasks, count)
    await correctness(record, gpu, "correctness", CONFIG, candidates)
    checked = replace(CONFIG, also_emulate=True)
    if gpu is None:
        await correctness(record, gpu, "correctness, emulator too", checked, candidates)
        return
    timed = mixed({n: tasks[n] for n in TIMED_TASKS}, TIMED, broken=False)
    before: Verifier | None = None
    for way, config in (("timed", CONFIG), ("timed, own", replace(CONFIG, trust="own"))):
        if record.elapsed < ends:
            before = await measured(record, gpu, way, config, timed, before)
    if record.elapsed < ends:
        await correctness(record, gpu, "correctness, emulator too", checked, candidates)


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
    record: Record, gpu: Gpu | None, way: str, config: VerifierConfig, candidates: Sequence[Candidate]
) -> None:
    """Visible cases of all candidates at once."""
    verifier = Verifier(config, gpu=gpu)
    try:
        for task in {c.task.digest: c.task for c in candidates}.values():
            await verifier._suite(task, False)
        if gpu is not None:  # a pool that was never asked has nothing ready
            await (await verifier._standby.take()).discard()
        await clocked(record, way, cold(candidates), verifier.test)
    finally:
        await verifier.aclose()


async def measured(
    record: Record,
    gpu: Gpu,
    way: str,
    config: VerifierConfig,
    candidates: Sequence[Candidate],
    before: Verifier | None,
) -> Verifier:
    """Tests and times; what is made once per task is made by a candidate that does not count, or was made `before`."""
    verifier = Verifier(config, gpu=gpu)
    if before is not None:
        verifier._suites = before._suites
        verifier._measuring._contents = before._measuring._contents
        verifier._measuring._baselines = before._measuring._baselines

    async def judged(task: Task, source: str) -> Verdict:
        return await verifier.measure(task, source, await verifier.test(task, source))

    try:
        started = record.elapsed
        firsts = {c.task.digest: c for c in candidates}.values()
        await asyncio.gather(*(judged(c.task, f"// first\n{c.source}") for c in firsts))
        record.say(f"{way}: contents and baselines of {len(firsts)} tasks took {record.elapsed - started:.1f} s")
        await clocked(record, way, cold(candidates), judged)
    finally:
        await verifier.aclose()
    return verifier


async def clocked(record: Record, way: str, candidates: Sequence[Candidate], judge: Judge) -> None:
    """One row: verdicts a minute, statuses, and seconds by phase summed over candidates."""
    started = time.monotonic()
    ended: list[float] = []

    async def one(candidate: Candidate) -> Verdict:
        verdict = await judge(candidate.task, candidate.source)
        ended.append(time.monotonic() - started)
        return verdict

    verdicts = await asyncio.gather(*(one(c) for c in candidates))
    wall = time.monotonic() - started
    phases: Counter[str] = Counter()
    for verdict in verdicts:
        phases.update(verdict.seconds)
    record.add(
        "throughput",
        way=way,
        candidates=len(candidates),
        wall_seconds=wall,
        per_minute=60 * len(candidates) / wall,
        statuses=dict(Counter(str(v.status) for v in verdicts)),
        phase_seconds={k: round(v, 2) for k, v in phases.items()},
        ended=[round(e, 2) for e in sorted(ended)],
        buffer_bytes=sorted({v.profile.get("timed_bytes", 0) for v in verdicts}),
        messages=sorted({v.message[:120] for v in verdicts if not v.correct})[:12],
    )
    record.say(f"{way}: {60 * len(candidates) / wall:.0f} a minute")
