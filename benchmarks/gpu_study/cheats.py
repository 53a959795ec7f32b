"""The cheat suite and the faults on this machine's device: what each was scored as."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from benchmarks.gpu_study.record import Record
from cudaperf_agent.cuda.baselines import ReferenceConfig
from cudaperf_agent.cuda.compile import CompileConfig
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.timing import TIMING
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import Limits
from tests.cheats.conftest import HERE, Attempt, attempts, head_of, task_named
from tests.cheats.on_gpu import known

AT_ONCE = 12
# These take what all processes share: nothing else runs beside them.
COMPILER_ONLY = "compile_bomb"
ALONE = frozenset({"device_memory", "host_memory", "fork_bomb", "sabotages_baseline", "compile_bomb"})
CONFIG = VerifierConfig(
    compile=CompileConfig(limits=Limits(seconds=8.0, memory=3 << 30)),
    emulated=Limits(seconds=5.0, memory=1 << 30, file_bytes=64 << 20, output=1 << 20),
    on_gpu=Limits(seconds=6.0, memory=4 << 30, file_bytes=64 << 20, output=1 << 20),
    timing=replace(TIMING, size_bytes=16 << 20, contents_bytes=32 << 20, contents=2, deadline=20.0),
    references=ReferenceConfig(samples=3),
    tasks_at_hand=8,
    trace=False,
)


async def run(record: Record, gpu: Gpu) -> None:
    """Judge all; what passes the tests is timed, too, since some cheats show only there."""
    verifier = Verifier(CONFIG, gpu=gpu)
    # What the page already has is not judged again, unless the machine was too busy to tell.
    done = {row["name"] for row in record.rows("cheat")} | {n for n, s in known().items() if s != "unstable"}
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(attempt: Attempt, fault: bool) -> None:
        async with turns:
            await judged(record, verifier, attempt, fault)

    try:
        waiting = [(a, fault) for folder, fault in ((".", False), ("faults", True)) for a in attempts(folder)]
        waiting = [(a, fault) for a, fault in waiting if a.name not in done]
        await asyncio.gather(*(one(a, fault) for a, fault in waiting if a.name not in ALONE))
        alone = [(a, fault) for a, fault in waiting if a.name in ALONE and a.name != COMPILER_ONLY]
        only = [(a, fault) for a, fault in waiting if a.name == COMPILER_ONLY]
        await asyncio.gather(*(in_turn(record, verifier, chain) for chain in (alone, only)))
        honest = (HERE / "00_honest.cu").read_text() + f"// after all of them, {time.time()}\n"
        verdict = await verifier.test(await task_named("saxpy"), honest)
        record.add("cheats_end", honest=verdict.status, message=verdict.message, backend=verifier.backend)
    finally:
        await verifier.aclose()


async def in_turn(record: Record, verifier: Verifier, chain: list[tuple[Attempt, bool]]) -> None:
    """One after the other."""
    for attempt, fault in chain:
        await judged(record, verifier, attempt, fault)


async def judged(record: Record, verifier: Verifier, attempt: Attempt, fault: bool) -> None:
    """One file, as a row. An exception is a row, too: the harness must not fall."""
    started = time.monotonic()
    expected = head_of(attempt.source).get("gpu", "").split() if verifier.backend == "gpu" else []
    wanted = sorted(expected or ([attempt.screened] if attempt.screened else attempt.expected))
    try:
        verdict = await verifier.test(await task_named(attempt.task), attempt.source, hidden=attempt.hidden)
        status, message, timed = str(verdict.status), verdict.message, False
        if verdict.correct and verifier.backend == "gpu":
            verdict = await verifier.measure(await task_named(attempt.task), attempt.source, verdict)
            status, message, timed = str(verdict.status), verdict.message, verdict.measured
    except Exception as error:  # noqa: BLE001 - a study goes on, and the row says what happened
        status, message, timed = "exception", f"{type(error).__name__}: {error}", False
    rewarded = status == "correct" and "correct" not in wanted
    # A GPU may say of a fault in other words what the emulator's checker says: that it fails is what counts.
    otherwise = status not in ("correct", "exception") and (fault or "correct" not in wanted)
    ok = status in wanted or otherwise
    seconds = round(time.monotonic() - started, 2)
    record.add(
        "cheat",
        name=attempt.name,
        fault=fault,
        status=status,
        wanted=wanted,
        ok=ok,
        rewarded=rewarded,
        timed=timed,
        message=message[:300],
        seconds=seconds,
    )
    if not ok:
        record.say(f"{attempt.name}: {status}, wanted {' or '.join(wanted)}: {message[:150]}")
