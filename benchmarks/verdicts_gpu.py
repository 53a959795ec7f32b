"""What only a GPU can say of verdicts: the cheat suite on it, A/A coverage, ceilings, shares by hand, throughput.

    python -m benchmarks.verdicts_gpu --out results.jsonl --seconds 110 --parts machine,throughput,shares,cheats
    python -m benchmarks.verdicts_gpu --out results.jsonl --seconds 90 --parts spread

Results are appended as they come; what a results file already has is not done again: a part that was cut short goes on.
A part that fails leaves a row that says so, and the others go on. With ``--emulate`` the same parts run small on a
stand-in for a GPU, to try them out; nothing they say of speed means anything then.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.gpu_study import cheats, nulls, shares, spread, throughput
from benchmarks.gpu_study.record import Record
from cudaperf_agent.cuda.ceilings import device_ceilings
from cudaperf_agent.cuda.emulator.compiler import precompiled_headers, runtime_library
from cudaperf_agent.cuda.gpu import Gpu, find_gpu, read_clocks
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.cuda.tracer import tracer_library
from cudaperf_agent.execution.sandbox import detect

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """One part: the most it may take (seconds), what it does, and the seconds below which it is not begun.

    What it does answers whether all of it is done; no answer is yes.
    """

    seconds: float
    work: Callable[[Record, Gpu, float], Awaitable[bool | None]]
    least: float = 5.0


def _build_emulator() -> None:
    runtime_library("check")
    precompiled_headers("check")


async def _machine(record: Record, gpu: Gpu, _seconds: float) -> None:
    nvcc, sandbox = find_nvcc(), detect()
    tracer = tracer_library(nvcc)
    record.add(
        "machine",
        gpu=asdict(gpu),
        nvcc=nvcc.version,
        nvcc_root=str(nvcc.root),
        sandbox=sandbox.name,
        tracer=str(tracer) if tracer is not None else None,
        clocks=read_clocks(),
    )
    if record.small:
        return
    wrap, env = sandbox.reading(nvcc.root).for_gpu().wrap, gpu_environment()
    found = await device_ceilings(nvcc, gpu, wrap=wrap, env=env, again=True)
    record.add("ceilings", **asdict(found))
    record.say(f"copy {found.copy / 1e12:.2f} TB/s, L2 {found.l2_copy / 1e12:.2f}, f32 {found.f32 / 1e12:.1f} TFLOP/s")


async def _cheats(record: Record, gpu: Gpu, _seconds: float) -> None:
    await asyncio.gather(nulls.run(record, gpu), cheats.run(record, gpu))


async def _shares(record: Record, gpu: Gpu, _seconds: float) -> None:
    await shares.run(record, gpu, _begun("shares", shares.prepare_all(record, gpu)))


async def _throughput(record: Record, gpu: Gpu, seconds: float) -> bool:
    return await throughput.run(record, gpu, seconds, _begun("throughput", throughput.prepare(record, gpu)))


async def _spread(record: Record, gpu: Gpu, seconds: float) -> bool:
    most = 6 if record.small else MOST_PROCESSES
    return await spread.run(record, seconds, most, _begun("spread", spread.prepare(record, gpu)))


# What parts need from the processors alone, begun while other parts hold the device.
_early: dict[str, asyncio.Task[Any]] = {}


def _begun(name: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The task that prepares a part: already running, or begun now."""
    if name in _early:
        work.close()
    else:
        _early[name] = asyncio.create_task(work)
    return _early[name]


MOST_PROCESSES = 120
"""Of each kernel: with five, 300 pairs that share no process."""
PARTS: dict[str, Part] = {
    "machine": Part(12.0, _machine),
    "throughput": Part(85.0, _throughput, least=15.0),
    "shares": Part(14.0, _shares, least=8.0),
    "cheats": Part(40.0, _cheats, least=10.0),
    "spread": Part(240.0, _spread, least=15.0),
}
EARLY: dict[str, Callable[[Record, Gpu], Coroutine[Any, Any, Any]]] = {
    "throughput": throughput.prepare,
    "shares": shares.prepare_all,
    "spread": spread.prepare,
}


async def study(record: Record, gpu: Gpu, parts: dict[str, float]) -> None:
    """The parts in order, each within its seconds and what is left."""
    # Takes some 20 s on a new machine, of two processors: what needs it waits, the rest does not.
    if "cheats" in parts:
        building = asyncio.create_task(asyncio.to_thread(_build_emulator))
        building.add_done_callback(lambda t: record.say(f"emulator: {t.exception() or 'built'}"))
    done = {row["name"] for row in record.rows("done")}
    for name, prepare in EARLY.items():
        if name in parts and name not in done:
            _begun(name, prepare(record, gpu))
    for name, seconds in parts.items():
        if name in done:
            continue
        limit = min(seconds, record.left)
        if limit < PARTS[name].least:
            record.add("skipped", name=name, left=record.left)
            continue
        started = record.elapsed
        record.say(f"{name}: up to {limit:.0f} s")
        try:
            whole = await asyncio.wait_for(PARTS[name].work(record, gpu, limit), limit)
            part = "cut" if whole is False else "done"
            record.add(part, name=name, seconds=round(record.elapsed - started, 1))
            record.say(f"{name}: {part} after {record.elapsed - started:.1f} s")
        except Exception as error:  # noqa: BLE001 - one part's failure must not lose the others
            text = "".join(traceback.format_exception(error))[-3000:]
            record.add("failed", name=name, seconds=round(record.elapsed - started, 1), error=text)
            record.say(f"{name} failed: {type(error).__name__}: {error}")


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="file that results are appended to")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--parts", default=",".join(PARTS), help="NAME or NAME:SECONDS, separated by commas")
    parser.add_argument("--emulate", action="store_true", help="on the emulator, to try the parts out")
    args = parser.parse_args()
    chosen: dict[str, float] = {}
    for word in args.parts.split(","):
        name, _, seconds = word.partition(":")
        if name not in PARTS:
            parser.error(f"no part `{name}`; there are {', '.join(PARTS)}")
        chosen[name] = float(seconds) if seconds else PARTS[name].seconds
    args.out.parent.mkdir(parents=True, exist_ok=True)
    record = Record(args.out, args.seconds, small=args.emulate)
    if args.emulate:
        from benchmarks.gpu_study.rehearsal import on_stand_in

        with on_stand_in() as stand_in:
            asyncio.run(ended(record, stand_in, chosen))
    gpu = find_gpu()
    if gpu is None:
        print("no GPU is here; --emulate tries the parts out without one", file=sys.stderr)
        return 3
    asyncio.run(ended(record, gpu, chosen))
    return 1 if record.rows("failed") else 0


async def ended(record: Record, gpu: Gpu, parts: dict[str, float]) -> None:
    """The study, and then the end of this process, whatever threads of parts that ran out of time still wait for."""
    await study(record, gpu, parts)
    record.say("done")
    os._exit(1 if record.rows("failed") else 0)


if __name__ == "__main__":
    sys.exit(main())
