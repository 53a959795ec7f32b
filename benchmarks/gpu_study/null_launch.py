"""Null launches on the device: each kernel of a candidate left out in turn, in a build of its own, must break outputs.

On the emulator that is part of every hidden test (`trials`); this is the same for what only a device can run. The
candidate is linked with `null_launch.c`, which takes the place of the functions that launch. Every run is a fresh
process, so this is for a winner, not for every candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.judge import CaseRun, CaseRuns, judge
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.trials import SECOND_POISON, Suite
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.execution.native import NativeRun, call_native
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name

WRAPPERS = Path(__file__).with_suffix(".c")
WRAPPED = ("cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelExC")
FOUND = 97
"""Status with which a process ends that was asked for a kernel that there is."""
LEAVE_OUT, FIND = "CUDAPERF_NULL_LAUNCH", "CUDAPERF_NULL_LAUNCH_FIND"
MOST_KERNELS = 16


@dataclass(frozen=True, slots=True)
class NullLaunches:
    """What leaving kernels out did.

    Attributes:
        kernels: That were launched; more than `MOST_KERNELS` are not looked at.
        idle: Numbers, from 1 in the order of first launches, of those without which every output was still right.
    """

    kernels: int
    idle: tuple[int, ...]


def linker_flags() -> tuple[str, ...]:
    """For nvcc."""
    return tuple(word for name in WRAPPED for word in ("-Xlinker", f"--wrap={name}"))


async def null_launches(place: Workplace, task: Task, source: str, suite: Suite) -> NullLaunches | None:
    """Leave out each kernel of a correct candidate in turn; `None` for a program or one that does not link.

    Args:
        place: Tools and the device.
        task: A C function.
        source: The candidate.
        suite: Cases, and what they must give.
    """
    dropin = make_dropin(task, source)
    if dropin is None or dropin.form == "program":
        return None
    config = replace(place.config.compile, flags=(*place.config.compile.flags, *linker_flags()))
    linked = f"{linked_c(task, dropin)}\n{WRAPPERS.read_text()}"
    wrap = place.sandbox.wrap
    async with place.compiling:
        made = await compile_cuda(place.nvcc, dropin.cu, "library", linked=linked, config=config, wrap=wrap)
    if made.artefact is None:
        return None
    idle: list[int] = []
    for number in range(1, MOST_KERNELS + 1):
        found = await _run(place, made.artefact, task, suite, {FIND: str(number)})
        if found.child.returncode != FOUND:
            return NullLaunches(number - 1, tuple(idle))
        without = await _run(place, made.artefact, task, suite, {LEAVE_OUT: str(number)})
        if judge(task, suite.cases, suite.expected, _runs(task, without)).correct:
            idle.append(number)
    return NullLaunches(MOST_KERNELS, tuple(idle))


async def _run(place: Workplace, library: Path, task: Task, suite: Suite, asked: dict[str, str]) -> NativeRun:
    async with place.running:
        return await call_native(
            library,
            [native_arguments(task, case, fill=SECOND_POISON) for case in suite.cases],
            limits=place.config.on_gpu,
            env={**gpu_environment(), **asked},
            wrap=place.sandbox.for_gpu().wrap,
        )


def _runs(task: Task, run: NativeRun) -> CaseRuns:
    found: Sequence[CaseRun] = [CaseRun(outputs_by_name(task, o.outputs), o.seconds, o.underrun) for o in run.outcomes]
    return CaseRuns(tuple(found), run.fault, run.child)
