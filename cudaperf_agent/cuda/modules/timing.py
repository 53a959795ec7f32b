"""Times of a PyTorch candidate at the file's own sizes, against the module eager and under ``torch.compile``.

Every call has contents of its own where memory allows, every timed output is checked, and some calls between them are
watched (`timed_calls`). The time is the host's, from the call of ``forward`` to full synchronisation of the device,
with the L2 flushed before. Baselines run in processes of their own, with torch's default settings, which are
recorded; imports and compilation come before the turn at the device. Not covered: contents are made in the
candidate's process, before the call that it is timed on.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.cuda.gpu import read_clocks
from cudaperf_agent.cuda.measure import settled
from cudaperf_agent.cuda.modules.budget import leaf_of, module_output
from cudaperf_agent.cuda.modules.config import ModuleConfig
from cudaperf_agent.cuda.modules.python_child import PythonCommand, prepare_python, python_command, run_python
from cudaperf_agent.cuda.modules.runs import CANDIDATE_FILE, Kernels, link_kernels, run_folder
from cudaperf_agent.cuda.modules.timed_calls import TimedCalls, call_order, calls, wait_ready
from cudaperf_agent.cuda.modules.timed_process import TimedEnded, TimedModule
from cudaperf_agent.cuda.statistics import speedup
from cudaperf_agent.cuda.verdict import Speedup, Status, Timing, Verdict
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.native import read_untrusted
from cudaperf_agent.execution.sandbox import Sandbox
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.find import GET_INPUTS, parse_inputs

EAGER, COMPILED = "PyTorch eager", "torch.compile"
_WHO = {EAGER: "eager", COMPILED: "compiled"}
_FILL = 0x5A
T = TypeVar("T")

Turn = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class TimingTurns:
    """Who may use the device when.

    Attributes:
        ready: Held while a process starts and compiles, several at once: nothing is timed meanwhile.
        timed: Held while calls are timed: nothing else is on the device meanwhile.
    """

    ready: Turn = nullcontext[None]
    timed: Turn = nullcontext[None]


ANY_TIME = TimingTurns()


@dataclass(frozen=True, slots=True)
class TimingPlace:
    """Where modules are timed.

    Attributes:
        sandbox: With the device visible.
        device: ``cuda:0``; ``cpu`` only to try this out.
        l2_bytes: To flush before each call.
        bandwidth: Of the device's memory by its datasheet, bytes per second; 0 where it is not known.
        env: Variables of every process.
        keep: The candidate's folder, where ``load_inline`` has built it already.
    """

    sandbox: Sandbox
    device: str = "cuda:0"
    l2_bytes: int = 0
    bandwidth: float = 0.0
    env: dict[str, str] = field(default_factory=dict)
    keep: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Baselines:
    """What a module must give at its own size, and how fast it is itself.

    Attributes:
        expected: Of every set of contents.
        entries: Name, type and shape of each output.
        state: As the processes read it, and its bytes.
        state_raw: The bytes.
        seed: Of the contents.
        timings: By the baseline's name; one that could not be timed is missing.
        missing: Why not, by name.
        flags: Settings of torch.
    """

    expected: tuple[Expected, ...]
    entries: tuple[dict[str, Any], ...]
    state: dict[str, Any]
    state_raw: bytes
    seed: int
    timings: dict[str, Timing]
    missing: dict[str, str]
    flags: dict[str, Any]


async def make_baselines(
    task: Task, place: TimingPlace, config: ModuleConfig, turns: TimingTurns = ANY_TIME
) -> Baselines:
    """Right outputs at the file's own size, and the baselines' times.

    Raises:
        BackendUnavailable: The module cannot be run at this size here.
    """
    async with turns.ready():
        known = await _at_own_size(task, place, config)
    asked = {name: who for name, who in _WHO.items() if name != COMPILED or config.compiled}
    for name in _WHO.keys() - asked.keys():
        known.missing[name] = "it was not asked for"

    async def timed(who: str) -> TimedCalls:
        return await _timed(task, None, Kernels({}), who, known, place, config, turns)

    found = dict(zip(asked, await asyncio.gather(*(timed(who) for who in asked.values())), strict=True))
    for name, who in asked.items():
        # Two at once need twice the memory.
        one = found[name] if found[name].timing is not None or len(asked) == 1 else await timed(who)
        if one.timing is None:
            known.missing[name] = one.message
        else:
            known.timings[name] = replace(one.timing, kind="reference")
            known.flags.update(one.flags)
    return known


async def _at_own_size(task: Task, place: TimingPlace, config: ModuleConfig) -> Baselines:
    module = task.module
    assert module is not None
    seed, dtype = secrets.randbelow(1 << 30), module.own_dtype
    folder = Path(tempfile.mkdtemp(prefix="cudaperf-expect-"))
    try:
        request = {
            **_request(task, place, seed, dtype),
            "who": "expect",
            "sets": config.timed + config.warmups,
            "fewest": config.fewest_contents,
            "bytes": config.contents_bytes,
        }
        (folder / "module.py").write_text(task.source, encoding="utf-8")
        (folder / "request.json").write_text(json.dumps(request))
        limits = config.on_gpu
        child = await run_python(
            "timed", folder, sandbox=place.sandbox, limits=limits, python=config.python, env=place.env
        )
        raw = read_untrusted(folder / "response.json", limits.file_bytes)
        if not child.ok or not raw:
            said = child.stderr.decode("utf-8", "replace").strip().splitlines()
            raise BackendUnavailable(f"the module does not run at its own size: {said[-1] if said else 'no word'}")
        response = json.loads(raw)
        outputs = read_untrusted(folder / "expected.bin", limits.file_bytes)
        state_raw = read_untrusted(folder / "state.bin", limits.file_bytes)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    expected = await asyncio.to_thread(_expected, response["cases"], outputs)
    entries = tuple(response["cases"][0]["plain"])
    return Baselines(expected, entries, response["state"], state_raw, seed, {}, {}, {})


async def measured_module(
    task: Task,
    file: ModuleFile,
    kernels: Kernels,
    verdict: Verdict,
    known: Baselines,
    place: TimingPlace,
    config: ModuleConfig,
    turns: TimingTurns = ANY_TIME,
) -> Verdict:
    """`verdict` of a correct candidate with its times; of another status where the timed calls show it wrong."""

    async def once() -> list[TimedCalls]:
        return [await _timed(task, file, kernels, "candidate", known, place, config, turns)]

    (timed,) = await settled(once)
    clocks = {**(read_clocks() if place.device != "cpu" else {}), **timed.clocks}
    if timed.timing is None:
        return replace(verdict, status=timed.status, message=timed.message, clocks=clocks)
    written = sum(int(e["bytes"]) for e in known.entries)
    if place.l2_bytes and written > 4 * place.l2_bytes and place.bandwidth:
        floor = written / place.bandwidth
        if timed.timing.median < floor:
            message = f"its {written} bytes of output cannot be written in {timed.timing.median:.3g} s"
            return replace(verdict, status=Status.CHEAT, message=message, clocks=clocks)
    speedups: list[Speedup] = [
        speedup(name, baseline.samples, timed.timing.samples) for name, baseline in known.timings.items()
    ]
    settings = {"torch": known.flags, "missing_baselines": known.missing}
    baselines = tuple(replace(t, note=f"{name}; {t.note}") for name, t in known.timings.items())
    return replace(
        verdict,
        measured=True,
        timings=(timed.timing, *baselines),
        speedups=tuple(speedups),
        clocks=clocks,
        profile={**verdict.profile, "baselines": settings, "output_bytes": written},
    )


def _request(task: Task, place: TimingPlace, seed: int, dtype: str) -> dict[str, Any]:
    module = task.module
    assert module is not None
    named = [] if module.inputs_from == GET_INPUTS else [[d, list(s)] for d, s in parse_inputs(module.inputs_from)]
    return {
        "class_name": module.class_name,
        "has_init_inputs": module.has_init_inputs,
        "named_inputs": named,
        "inputs": [asdict(i) for i in module.inputs],
        "shapes": [list(i.shape) for i in module.inputs],
        "device": place.device,
        "dtype": dtype,
        "seed": seed,
        "fill": _FILL,
        "flush_bytes": 2 * place.l2_bytes,
    }


def _expected(cases: Sequence[dict[str, Any]], raw: bytes) -> tuple[Expected, ...]:
    found = []
    for number, builds in enumerate(cases):
        outputs = []
        for index, entry in enumerate(builds["plain"]):
            wide = leaf_of(builds["wide"][index], raw) if "wide" in builds else None
            shifted = [leaf_of(builds["moved0"][index], raw)] if "moved0" in builds else []
            summed = leaf_of(builds["summed"][index], raw) if "summed" in builds else None
            outputs.append(module_output(entry, leaf_of(entry, raw), wide, shifted, summed))
        found.append(Expected(f"contents {number}", tuple(outputs)))
    return tuple(found)


async def _timed(
    task: Task,
    file: ModuleFile | None,
    kernels: Kernels,
    who: str,
    known: Baselines,
    place: TimingPlace,
    config: ModuleConfig,
    turns: TimingTurns,
) -> TimedCalls:
    """Time one side in a fresh process."""
    module = task.module
    assert module is not None
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder(place.keep if who == "candidate" else None, "cudaperf-timed-"))
        request: dict[str, Any] = {**_request(task, place, known.seed, module.own_dtype), "who": who}
        (folder / "state.bin").write_bytes(known.state_raw)
        if file is not None:
            # What the reference is stays out of the candidate's process.
            (folder / CANDIDATE_FILE).write_text(file.complete, encoding="utf-8")
            (folder / "inputs.bin").write_bytes(b"")
            link_kernels(folder, kernels)
            request |= {
                "kernels": str(folder / "kernels"),
                "runtime": None,
                "libraries": [],
                "cases": [],
                "timeline": False,
            }
            request |= {"init": json.loads(module.init)}
        else:
            (folder / "module.py").write_text(task.source, encoding="utf-8")
        (folder / "request.json").write_text(json.dumps({**request, "state": known.state}))
        await prepare_python(config.python)
        command: PythonCommand = python_command(
            "timed", folder, sandbox=place.sandbox, python=config.python, readable=list(kernels.by_text.values())
        )
        env = {**command.env, **place.env}
        order = call_order(len(known.expected), config.warmups + config.timed)
        try:
            async with turns.ready():
                process = stack.enter_context(TimedModule(command.argv, folder, env, config.on_gpu.seconds))
                ready = await _threaded(process, lambda: wait_ready(process, order[0] if file is None else None))
            async with turns.timed():
                process.renew()
                return await _threaded(
                    process,
                    lambda: calls(process, ready, folder, module, who, known.expected, known.entries, config, order),
                )
        except TimedEnded as error:
            status = Status.TIMEOUT if error.timed_out else Status.CRASH
            return TimedCalls(None, status, f"while timed: {error.message}")


async def _threaded(process: TimedModule, work: Callable[[], T]) -> T:
    """Blocking work on a process in a thread, which has ended when this returns, however it does."""
    job = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        process.kill()
        await asyncio.wait([job])
        raise
