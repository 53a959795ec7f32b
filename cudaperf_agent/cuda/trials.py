"""The runs a candidate must survive: twice with other memory and another order, on the GPU, each kernel needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.cuda.cheats import CaseLaunches, launch_findings
from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.judge import CaseRun, CaseRuns, judge
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.model import Case, Task

# An output byte pattern that is a NaN and −1, and one that is neither: what is left unwritten cannot pass twice.
FIRST_POISON, SECOND_POISON = 0xFF, 0x5A

Run = Callable[[Sequence[Case], RunPlan], Awaitable[CaseRuns]]
"""Runs cases by a plan in a child process."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of a task, what they must give, and the SHA-256 (hex) of their inputs."""

    cases: tuple[Case, ...]
    expected: tuple[Expected, ...]
    digest: str = ""


async def try_candidate(
    task: Task, suite: Suite, run: Run, *, repeat_seconds: float, suppress: bool, counted: bool
) -> Verdict:
    """Judge a candidate over all cases.

    Args:
        task: The task.
        suite: Its cases.
        run: Runs them.
        repeat_seconds: The second run takes the cheapest cases up to this sum.
        suppress: Also leave out each kernel in turn (only where the run supports it).
        counted: Launches are counted by the run.
    """
    first = await run(suite.cases, RunPlan(FIRST_POISON))
    verdict = judge(task, suite.cases, suite.expected, first)
    if not verdict.correct:
        return verdict
    again = _cheapest(suite, first, repeat_seconds)
    second = await _repeated(task, again, run)
    if second is not None:
        return replace(second, passed=verdict.passed - max(1, second.total - second.passed), total=verdict.total)
    if counted:
        finding = launch_findings([_launches(task, c, r) for c, r in zip(suite.cases, first.runs, strict=True)])
        if finding is not None:
            serial = any(r.launches for r in first.runs)
            # One thread doing all of it is honest work that is no translation; no launch at all is none.
            return replace(verdict, status=Status.WRONG if serial else Status.CHEAT, message=finding.message)
    if suppress:
        idle = await _idle_kernel(task, suite, first, run)
        if idle is not None:
            message = f"the kernel {idle} adds nothing: without its launches every output is the same"
            return replace(verdict, status=Status.CHEAT, message=message)
    return verdict


async def _repeated(task: Task, suite: Suite, run: Run) -> Verdict | None:
    """The verdict of a second run if it differs: other poison, and the threads of a block in another order."""
    other = judge(task, suite.cases, suite.expected, await run(suite.cases, RunPlan(SECOND_POISON, "reverse")))
    if other.correct or other.status in (Status.MEMORY_ERROR, Status.UNSUPPORTED, Status.LAUNCH_ERROR):
        return None if other.correct else other
    # The same order as at first tells an output left unwritten from a result that depends on the order.
    same_order = judge(task, suite.cases, suite.expected, await run(suite.cases, RunPlan(SECOND_POISON)))
    if not same_order.correct:
        return replace(same_order, message=f"with other contents of unwritten memory, {same_order.message}")
    return replace(other, status=Status.UNSTABLE, message=f"a second run gives another result: {other.message}")


async def _idle_kernel(task: Task, suite: Suite, first: CaseRuns, run: Run) -> str | None:
    """A kernel without which every case still comes out right, `None` if each is needed."""
    for kernel in dict.fromkeys(k for r in first.runs for k in r.kernels):
        chosen = [i for i, r in enumerate(first.runs) if kernel in r.kernels]
        cases = tuple(suite.cases[i] for i in chosen)
        expected = tuple(suite.expected[i] for i in chosen)
        if judge(task, cases, expected, await run(cases, RunPlan(SECOND_POISON, suppress=kernel))).correct:
            return kernel
    return None


def _cheapest(suite: Suite, first: CaseRuns, seconds: float) -> Suite:
    order = sorted(range(len(suite.cases)), key=lambda i: first.runs[i].seconds)
    chosen: list[int] = []
    spent = 0.0
    for index in order:
        spent += first.runs[index].seconds
        if chosen and spent > seconds:
            break
        chosen.append(index)
    chosen.sort()
    return Suite(tuple(suite.cases[i] for i in chosen), tuple(suite.expected[i] for i in chosen), suite.digest)


def _launches(task: Task, case: Case, run: CaseRun) -> CaseLaunches:
    sizes = [case.values[p.name].size for p in task.buffers if p.name in case.values]
    written = [case.values[p.name].size for p in task.buffers if p.written and p.name in case.values]
    elements = max(sizes, default=len(case.stdin.split()))
    return CaseLaunches(elements, run.launches or 0, run.threads, bool(task.returns or sum(written) or case.stdin))
