"""Candidates on the real GPU: the same cases through the same runner, with the library that nvcc built."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.gpu import chosen_environment
from cudaperf_agent.cuda.judge import CaseRun, CaseRuns
from cudaperf_agent.cuda.trials import FIRST_POISON, SECOND_POISON, TwoRuns
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Worker, Wrap, call_native
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.program import run_program
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name


def gpu_environment() -> dict[str, str]:
    """Variables of every process on the GPU: no compilation behind our back, the driver's library found as by us, and
    no device but the chosen one visible."""
    found = {"CUDA_CACHE_DISABLE": "1", "CUDA_MODULE_LOADING": "EAGER", **chosen_environment()}
    library_path = os.environ.get("LD_LIBRARY_PATH")
    return {**found, "LD_LIBRARY_PATH": library_path} if library_path else found


async def run_on_gpu(
    artefact: Path,
    task: Task,
    cases: Sequence[Case],
    plan: RunPlan,
    *,
    limits: Limits,
    wrap: Wrap | None,
    worker: Worker | None = None,
) -> CaseRuns:
    """Run all cases in one child (a program: one child per case). Only `plan.fill` has a meaning here."""
    if task.mode == "program":
        runs: list[CaseRun] = []
        for case in cases:
            child = await run_program(artefact, case, wrap=wrap, limits=limits, env=gpu_environment())
            if child.timed_out or child.out_of_memory or child.returncode < 0:
                return CaseRuns(tuple(runs), None, child)
            outputs = {"stdout": np.frombuffer(child.stdout, np.uint8), "exit": np.array(child.returncode)}
            runs.append(CaseRun(outputs, child.seconds))
        return CaseRuns(tuple(runs), None, replace(child, returncode=0))
    run = await call_native(
        artefact,
        [native_arguments(task, case, fill=plan.fill) for case in cases],
        limits=limits,
        env=gpu_environment(),
        wrap=wrap,
        worker=worker,
    )
    found = [
        CaseRun(outputs_by_name(task, outcome.outputs), outcome.seconds, outcome.underrun) for outcome in run.outcomes
    ]
    return CaseRuns(tuple(found), run.fault, run.child)


async def run_twice_on_gpu(
    artefact: Path, task: Task, cases: Sequence[Case], *, limits: Limits, wrap: Wrap | None, worker: Worker | None
) -> TwoRuns:
    """Run all cases of a function, and then again in reverse order with other poison, in one child.

    One process for both, since a device makes few contexts a second. What the first run leaves behind cannot help the
    second: it must already have been right by itself.
    """
    forward = [native_arguments(task, case, fill=FIRST_POISON) for case in cases]
    backward = [native_arguments(task, case, fill=SECOND_POISON) for case in reversed(cases)]
    run = await call_native(
        artefact, [*forward, *backward], limits=limits, env=gpu_environment(), wrap=wrap, worker=worker
    )
    found = [CaseRun(outputs_by_name(task, o.outputs), o.seconds, o.underrun) for o in run.outcomes]
    if len(found) < len(cases):
        return TwoRuns(CaseRuns(tuple(found), run.fault, run.child), CaseRuns((), run.fault, run.child))
    fine = replace(run.child, returncode=0, timed_out=False, out_of_memory=False)
    again = CaseRuns(tuple(found[len(cases) :]), run.fault, run.child)
    return TwoRuns(CaseRuns(tuple(found[: len(cases)]), None, fine), again)
