"""The runs a candidate must survive: twice with other memory and another order, on the GPU, each kernel needed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.cuda.cheats import GROWTH, CaseLaunches, grows, narrow, unlaunched
from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.judge import CaseRun, CaseRuns, judge
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.sizes import count_of, integers

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
        seen = [_launches(task, c, r) for c, r in zip(suite.cases, first.runs, strict=True)]
        nothing = unlaunched(seen)
        if nothing is not None:
            return replace(verdict, status=Status.CHEAT, message=nothing.message)
        if not grows(seen):
            seen += await _probed(task, suite, run)
            if not grows(seen):
                # One thread, or one block, doing all of it is honest work, but no translation.
                return replace(verdict, status=Status.WRONG, message=narrow(seen).message)
    if suppress:
        idle = await _idle_kernel(task, suite, first, run)
        if idle is not None:
            message = f"the kernel {_placed(idle)} adds nothing: without it every output is the same; remove it"
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


async def _probed(task: Task, suite: Suite, run: Run) -> list[CaseLaunches]:
    """Launches where each size in turn is large and the others small; fewer if the candidate is slow on them."""
    probes = await asyncio.to_thread(_probe_cases, task, suite)
    if not probes:
        return []
    result = await run(probes, RunPlan(FIRST_POISON, seconds=GROWTH.probe_seconds))
    return [_launches(task, case, one) for case, one in zip(probes, result.runs, strict=False)]


def _probe_cases(task: Task, suite: Suite) -> list[Case]:
    if task.mode == "program":
        return []
    known = integers(task)
    bases = [{n: int(c.values[n]) for n in known.sizes} for c in suite.cases]
    # Small, but with something to do: the least sizes that are all above one. What only counts iterations is one.
    usable = sorted((b for b in bases if all(v > 1 for v in b.values())), key=lambda b: sum(b.values()))
    if not known.sizes or not usable:
        return []
    found: list[Case] = []
    for value in GROWTH.probes:
        wishes = [{**usable[0], name: value} for name in known.sizes]
        if len(known.sizes) > 1:
            wishes.append(dict.fromkeys(known.sizes, value))
        for wish in wishes:
            sizes = {**dict.fromkeys(known.counts, 1), **wish}
            # Counted before anything of that size is made.
            if max((count_of(e, sizes) or 0 for e in known.extents), default=0) <= GROWTH.probe_elements:
                with contextlib.suppress(InputRefused):
                    found.append(sized_case(task, sizes, 0))
    return found


async def _idle_kernel(task: Task, suite: Suite, first: CaseRuns, run: Run) -> str | None:
    """A kernel without which every case still comes out right, `None` if each is needed.

    One that only ever has a single thread is not asked about: bookkeeping that turns out useless hides no work.
    """
    for kernel in dict.fromkeys(k for r in first.runs for k, threads in r.kernels.items() if threads > 1):
        chosen = [i for i, r in enumerate(first.runs) if kernel in r.kernels]
        cases = tuple(suite.cases[i] for i in chosen)
        expected = tuple(suite.expected[i] for i in chosen)
        if judge(task, cases, expected, await run(cases, RunPlan(SECOND_POISON, suppress=kernel))).correct:
            return kernel
    return None


def _placed(statement: str) -> str:
    name, _, line = statement.rpartition("@")
    return f"{name} (launched in line {line})"


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
