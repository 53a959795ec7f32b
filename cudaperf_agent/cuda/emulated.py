"""Candidates on the CPU emulator: built once per content, run case by case in a sandboxed child."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.compile import CANDIDATE_FILE, LINKED_FILE
from cudaperf_agent.cuda.judge import CaseRun, CaseRuns
from cudaperf_agent.cuda.verdict import Diagnostic
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Wrap, call_native
from cudaperf_agent.execution.paths import cache_dir
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.program import run_program
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name

REPORT_MARK = "cudaperf-emulator-report: "
SUPPRESS_VARIABLE = "CUDAPERF_EMULATOR_SUPPRESS"
"""Name of a kernel whose launches the emulator leaves out."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """A candidate built for the emulator.

    Attributes:
        artefact: Shared object, or program in program mode; `None` if it could not be built.
        diagnostics: Of g++, with the candidate's lines.
        unsupported: What the emulator does not cover, with the line.
        seconds: Wall time of the build that made it.
    """

    artefact: Path | None
    diagnostics: tuple[Diagnostic, ...]
    unsupported: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How one run of the cases differs from another.

    Attributes:
        fill: Byte that outputs are poisoned with.
        order: In which the emulator takes the threads of a block.
        seed: Of a random order.
        suppress: Kernel whose launches are left out.
    """

    fill: int = 0xFF
    order: str = "forward"
    seed: int = 0
    suppress: str | None = None


async def build_emulated(
    text: str, linked: str | None, *, wrap: Wrap | None, mode: str = "check", version: str = ""
) -> Emulated:
    """Build for the emulator, or take it from the cache.

    Args:
        text: The ``.cu`` to link, wrapper included; a whole program where `linked` is `None`.
        linked: C text from `link.linked_c`.
        wrap: The sandbox of the compiler.
        mode: ``check`` finds memory errors and races, ``fast`` does not.
        version: Of the emulator; another one builds anew.
    """
    digest = hashlib.sha256("\0".join([version, mode, text, linked or ""]).encode()).hexdigest()
    home = cache_dir() / "emulated" / digest[:2] / digest
    known = await asyncio.to_thread(_load, home)
    if known is not None:
        return known
    home.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="building-", dir=home.parent))
    try:
        extra = []
        if linked is not None:
            (folder / LINKED_FILE).write_text(linked)
            extra = [folder / LINKED_FILE]
        loop = asyncio.get_running_loop()
        started = loop.time()
        built = await emulator.build(
            text,
            path_name=CANDIDATE_FILE,
            extra=extra,
            folder=folder,
            mode="check" if mode == "check" else "fast",
            program=linked is None,
            wrap=wrap,
        )
        artefact = built.program if linked is None else built.library
        result = Emulated(artefact, tuple(built.diagnostics), built.unsupported, loop.time() - started)
        return await asyncio.to_thread(_keep, home, folder, result)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _keep(home: Path, folder: Path, result: Emulated) -> Emulated:
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
        shutil.rmtree(kept, ignore_errors=True)  # another run was first, with the same content
    return replace(result, artefact=home / result.artefact.name if result.artefact else None)


def _load(home: Path) -> Emulated | None:
    try:
        record: dict[str, Any] = json.loads((home / "result.json").read_text())
    except (OSError, ValueError):
        return None
    artefact = home / record["artefact"] if record["artefact"] else None
    if artefact is not None and not artefact.exists():
        return None
    diagnostics = tuple(Diagnostic(**d) for d in record["diagnostics"])
    return Emulated(artefact, diagnostics, record["unsupported"], record["seconds"])


async def run_emulated(
    built: Emulated, task: Task, cases: Sequence[Case], plan: RunPlan, *, limits: Limits, wrap: Wrap | None
) -> CaseRuns:
    """Run all cases in one child (a program: one child per case) and read what the emulator reports."""
    assert built.artefact is not None
    env = dict(emulator.environment(plan.order, plan.seed))  # type: ignore[arg-type]
    if plan.suppress is not None:
        env[SUPPRESS_VARIABLE] = plan.suppress
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
        child = await run_program(program, case, wrap=wrap, limits=limits, env=env)
        said = child.stderr.decode("utf-8", "replace")
        _, _, report = said.rpartition(REPORT_MARK)
        outputs = {"stdout": np.frombuffer(child.stdout, np.uint8), "exit": np.array(child.returncode)}
        ended = child.timed_out or child.out_of_memory or child.returncode < 0
        if ended and not report:
            return CaseRuns(tuple(runs), None, child)
        runs.append(_case_run(outputs, child.seconds, report, False))
    return CaseRuns(tuple(runs), None, replace(child, returncode=0))


def _case_run(outputs: dict[str, Any], seconds: float, text: str, underrun: bool) -> CaseRun:
    report = emulator.parse_report(text)
    stats = report.stats
    return CaseRun(
        outputs=outputs,
        seconds=seconds,
        underrun=underrun,
        reports=tuple(report.reports),
        unsupported=report.unsupported,
        launches=stats.launches,
        threads=stats.widest,
        kernels=stats.kernels,
    )
