"""Runs generated sources as drop-ins on the emulator and compares them with the C."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.link import OWN_FIRST, linked_c
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import call_native
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name


@dataclass(frozen=True, slots=True)
class Trouble:
    """The first thing that went wrong with a candidate, in words; empty for none."""

    text: str
    widest: int = 0


async def check(
    task: Task,
    source: str,
    cases: Sequence[Case],
    folder: Path,
    *,
    oracle: Oracle,
    orders: Sequence[emulator.Order] = ("forward",),
) -> Trouble:
    """Build a device-form source in check mode, in an existing folder, and run it on cases in each order of threads."""
    dropin = make_dropin(task, source)
    assert dropin is not None
    (folder / "linked.c").write_text(linked_c(task, dropin))
    compiler = await asyncio.create_subprocess_exec(
        "gcc", "-O1", "-fPIC", OWN_FIRST, "-w", "-c", "linked.c", cwd=folder
    )
    assert await compiler.wait() == 0
    built = await emulator.build(
        dropin.cu, path_name=f"{task.name}.cu", folder=folder, extra=[folder / "linked.o"], mode="check"
    )
    if built.library is None:
        return Trouble(f"not built: {built.unsupported} {[d.message for d in built.diagnostics][:3]}")
    expected = await oracle.expected(cases)
    widest = 0
    for order in orders:
        trouble = await _run(task, built.library, cases, expected, order)
        widest = max(widest, trouble.widest)
        if trouble.text:
            return Trouble(f"{order}: {trouble.text}", widest)
    return Trouble("", widest)


async def _run(
    task: Task, library: Path, cases: Sequence[Case], expected: Sequence[Expected], order: emulator.Order
) -> Trouble:
    run = await call_native(
        library,
        [native_arguments(task, case) for case in cases],
        preload=[emulator.runtime_library("check")],
        env=emulator.environment(order),
        limits=Limits(seconds=120),
    )
    widest = 0
    for case, want, outcome in zip(cases, expected, run.outcomes, strict=False):
        report = emulator.parse_report(outcome.report)
        widest = max(widest, report.stats.get("widest", 0))
        if report.unsupported or report.reports:
            return Trouble(f"{case.name}: {report.unsupported} {[(r.kind, r.line, r.message) for r in report.reports]}")
        compared = compare(task, case, want, outputs_by_name(task, outcome.outputs))
        if not compared.ok:
            return Trouble(f"{case.name}: {compared.mismatch}")
    if len(run.outcomes) < len(cases):
        return Trouble(f"stopped after {len(run.outcomes)} cases: {run.fault} {run.child.stderr[-800:]!r}")
    return Trouble("", widest)
