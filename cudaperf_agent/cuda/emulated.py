"""Candidates on the CPU emulator: built once per content, run case by case in a sandboxed child."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.blame import broken, is_candidates, refuse_system_trouble, require_started
from cudaperf_agent.cuda.cached import touch
from cudaperf_agent.cuda.compile import CANDIDATE_FILE, LINKED_FILE
from cudaperf_agent.cuda.emulator.compiler import precompiled_headers
from cudaperf_agent.cuda.judge import CaseRun, CaseRuns
from cudaperf_agent.cuda.link import OWN_FIRST
from cudaperf_agent.cuda.reach import trace_flags
from cudaperf_agent.cuda.verdict import Diagnostic
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.execution.native import Wrap, call_native
from cudaperf_agent.execution.paths import cache_dir
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.program import run_program
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name

_REPORT_TO_STDERR = {"CUDAPERF_EMULATOR_REPORT": "-"}
_EMPTY = "__global__ void cudaperf_trial() {}\n"
_LINK_FLAGS = ("-O1", "-g", "-fPIC", OWN_FIRST, "-w", "-c")
_LINK_LIMITS = Limits(seconds=60.0, memory=2 << 30)


@dataclass(frozen=True, slots=True)
class Emulated:
    """A candidate built for the emulator.

    Attributes:
        artefact: Shared object, or program in program mode; `None` if it could not be built.
        diagnostics: Of g++, with the candidate's lines.
        unsupported: What the emulator does not cover, with the line.
        seconds: Wall time of the build that made it.
        limited: A limit of time or memory ended the compiler; another try may go otherwise.
        reached: Traced names that the candidate refers to or defines (`reach.traced`).
    """

    artefact: Path | None
    diagnostics: tuple[Diagnostic, ...]
    unsupported: str | None
    seconds: float
    limited: bool = False
    reached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How one run of the cases differs from another.

    Attributes:
        fill: Byte that outputs are poisoned with.
        order: In which the emulator takes the threads of a block.
        seed: Of a random order.
        suppress: Launch statement, as ``kernel@line``, that is left out; ``*`` leaves out all but counts them.
        seconds: A shorter limit than usual.
    """

    fill: int = 0xFF
    order: emulator.Order = "forward"
    seed: int = 0
    suppress: str | None = None
    seconds: float | None = None


async def build_emulated(
    text: str,
    linked: str | None,
    *,
    wrap: Wrap | None,
    limits: Limits,
    mode: emulator.Mode = "check",
) -> Emulated:
    """Build for the emulator, or take it from the cache.

    Args:
        text: The ``.cu`` to link, wrapper included; a whole program where `linked` is `None`.
        linked: C text from `link.linked_c`.
        wrap: The sandbox of the compiler.
        limits: Of the compiler.
        mode: ``check`` finds memory errors and races, ``fast`` does not.

    Raises:
        BackendUnavailable: The emulator cannot build anything here.
    """
    version = await asyncio.to_thread(_emulator_version, mode)
    digest = hashlib.sha256(
        "\0".join([version, mode, *_LINK_FLAGS, *trace_flags(), text, linked or ""]).encode()
    ).hexdigest()
    home = cache_dir() / "emulated" / digest[:2] / digest
    known = await asyncio.to_thread(_load, home)
    if known is not None:
        return known
    try:
        made = await _built(text, linked, home, wrap=wrap, limits=limits, mode=mode)
        if _unexplained(made):
            # No line of the candidate is to blame. An empty file must build; if it does, once more.
            trial = await _built(_EMPTY, "", None, wrap=wrap, limits=limits, mode=mode)
            if trial.artefact is None:
                raise broken("the emulator's compiler", trial.unsupported or "")
            made = await _built(text, linked, home, wrap=wrap, limits=limits, mode=mode)
        return made
    except OSError as error:
        raise broken("the emulator's compiler", str(error)) from error


def _unexplained(made: Emulated) -> bool:
    if made.artefact is not None or made.limited or is_candidates(made.diagnostics):
        return False
    # A line without a message of the compiler is our own refusal of something that is not emulated.
    return bool(made.diagnostics) or not (made.unsupported or "").startswith("line ")


async def _built(
    text: str, linked: str | None, home: Path | None, *, wrap: Wrap | None, limits: Limits, mode: emulator.Mode
) -> Emulated:
    """Build in a folder of its own; what works is kept in `home`.

    A failure is not kept: it may be the machine's, and is quick to find again.
    """
    parent = cache_dir() / "emulated" if home is None else home.parent
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="building-", dir=parent))
    try:
        extra = []
        if linked is not None:
            made = await _compiled_c(linked, folder, wrap)
            if isinstance(made, Emulated):
                return made
            extra = [made]
        loop = asyncio.get_running_loop()
        started = loop.time()
        built = await emulator.build(
            text,
            path_name=CANDIDATE_FILE,
            extra=extra,
            folder=folder,
            mode=mode,
            program=linked is None,
            wrap=wrap,
            limits=emulator.BuildLimits(limits.seconds, limits.memory),
        )
        artefact = built.program if linked is None else built.library
        limited = artefact is None and loop.time() - started >= limits.seconds
        said = " ".join([built.unsupported or "", *(d.message for d in built.diagnostics)])
        if artefact is None and not limited and not is_candidates(built.diagnostics):
            refuse_system_trouble("the emulator's compiler", said)
        result = Emulated(
            artefact, tuple(built.diagnostics), built.unsupported, loop.time() - started, limited, built.reached
        )
        if artefact is None or home is None:
            return result
        return await asyncio.to_thread(_keep, home, result)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _compiled_c(linked: str, folder: Path, wrap: Wrap | None) -> Path | Emulated:
    source, made = folder / LINKED_FILE, folder / "linked.o"
    source.write_text(linked)
    argv = [shutil.which("gcc") or "gcc", *_LINK_FLAGS, "-o", str(made), str(source)]
    child = await run_child(wrap(argv, folder) if wrap else argv, limits=_LINK_LIMITS, cwd=folder)
    if child.ok and made.exists():
        return made
    said = child.stderr.decode("utf-8", "replace").strip()
    return Emulated(None, (), f"the C part of the file does not compile: {said[:300]}", child.seconds)


@lru_cache(maxsize=2)
def _emulator_version(mode: emulator.Mode) -> str:
    """Of all that decides what a build is and how it runs. Makes the runtime, which takes seconds on a new machine."""
    made = [emulator.runtime_library(mode).parent.name, precompiled_headers(mode).parent.name]
    texts = [path.read_text() for path in sorted(Path(emulator.__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join([*made, *texts]).encode()).hexdigest()


def _keep(home: Path, result: Emulated) -> Emulated:
    kept = Path(tempfile.mkdtemp(prefix="keeping-", dir=home.parent))
    record = asdict(result)
    record["artefact"] = result.artefact.name if result.artefact else None
    if result.artefact is not None:
        shutil.copyfile(result.artefact, kept / result.artefact.name)
        (kept / result.artefact.name).chmod(0o755)
    (kept / "result.json").write_text(json.dumps(record))
    kept.chmod(0o755)
    try:
        kept.rename(home)
    except OSError:
        shutil.rmtree(kept, ignore_errors=True)
        if not home.is_dir():  # else another run was first, with the same content
            raise
    return replace(result, artefact=home / result.artefact.name if result.artefact else None)


def _load(home: Path) -> Emulated | None:
    try:
        record: dict[str, Any] = json.loads((home / "result.json").read_text())
    except (OSError, ValueError):
        return None
    artefact = home / record["artefact"] if record["artefact"] else None
    if artefact is not None and not artefact.exists():
        shutil.rmtree(home, ignore_errors=True)
        return None
    touch(home)
    diagnostics = tuple(Diagnostic(**d) for d in record["diagnostics"])
    return Emulated(artefact, diagnostics, record["unsupported"], record["seconds"], reached=tuple(record["reached"]))


async def run_emulated(
    built: Emulated, task: Task, cases: Sequence[Case], plan: RunPlan, *, limits: Limits, wrap: Wrap | None
) -> CaseRuns:
    """Run all cases in one child (a program: one child per case) and read what the emulator reports."""
    assert built.artefact is not None
    if plan.seconds is not None:
        limits = replace(limits, seconds=min(plan.seconds, limits.seconds))
    env = emulator.environment(plan.order, plan.seed, plan.suppress)
    if task.mode == "program":
        return await _run_programs(built.artefact, task, cases, env, limits, wrap)
    run = await call_native(
        built.artefact,
        [native_arguments(task, case, fill=plan.fill) for case in cases],
        limits=limits,
        preload=[emulator.runtime_library("check")],
        env=env,
        wrap=wrap,
    )
    if not run.outcomes:
        await require_started(run.child, wrap)
    runs = [
        _case_run(outputs_by_name(task, outcome.outputs), outcome.seconds, outcome.report, outcome.underrun)
        for outcome in run.outcomes
    ]
    return CaseRuns(tuple(runs), run.fault, run.child)


async def _run_programs(
    program: Path, task: Task, cases: Sequence[Case], env: dict[str, str], limits: Limits, wrap: Wrap | None
) -> CaseRuns:
    """One child per input; the report comes at the end of standard error."""
    runs: list[CaseRun] = []
    for case in cases:
        child = await run_program(program, case, wrap=wrap, limits=limits, env={**env, **_REPORT_TO_STDERR})
        if child.returncode and not child.stdout:
            await require_started(child, wrap)
        report = child.stderr.decode("utf-8", "replace")
        outputs = {"stdout": np.frombuffer(child.stdout, np.uint8), "exit": np.array(child.returncode)}
        ended = child.timed_out or child.out_of_memory or child.returncode < 0
        if ended:
            return CaseRuns(tuple(runs), None, child)
        runs.append(_case_run(outputs, child.seconds, report, False))
    return CaseRuns(tuple(runs), None, replace(child, returncode=0))


def _case_run(outputs: dict[str, Any], seconds: float, text: str, underrun: bool) -> CaseRun:
    report = emulator.parse_report(text)
    return CaseRun(
        outputs=outputs,
        seconds=seconds,
        underrun=underrun,
        reports=report.reports,
        notes=report.notes,
        unsupported=report.unsupported,
        launches=report.stats.get("launches", 0),
        threads=report.stats.get("widest", 0),
        kernels=report.kernels,
        writes=report.stats.get("writes", 0),
        span=report.stats.get("span", 0),
    )
