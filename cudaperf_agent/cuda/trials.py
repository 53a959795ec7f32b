"""The runs a candidate must survive: twice with other memory and another order, on the GPU, each kernel needed."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
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
from cudaperf_agent.tasks.sizes import Integers, count_of, integers, legal

# An output byte pattern that is a NaN and −1, and one that is neither: what is left unwritten cannot pass twice.
FIRST_POISON, SECOND_POISON = 0xFF, 0x5A
EVERY_KERNEL = "*"

Run = Callable[[Sequence[Case], RunPlan], Awaitable[CaseRuns]]
"""Runs cases by a plan in a child process."""
RunTwice = Callable[[Sequence[Case]], Awaitable["TwoRuns"]]
"""Runs cases in one child process, and then again from the last to the first with `SECOND_POISON`."""
Expect = Callable[[Sequence[Case]], Awaitable[Sequence[Expected]]]
"""What cases must give, by the oracle."""


@dataclass(frozen=True, slots=True)
class TwoRuns:
    """Two runs in one process; the cases of `again` are in reverse order."""

    first: CaseRuns
    again: CaseRuns


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of a task, what they must give, the SHA-256 (hex) of their inputs, and larger cases to count launches on.

    The larger ones are for PyTorch modules; those of C tasks are made where they are needed.
    """

    cases: tuple[Case, ...]
    expected: tuple[Expected, ...]
    digest: str = ""
    probes: tuple[Case, ...] = ()


async def try_candidate(
    task: Task,
    suite: Suite,
    run: Run,
    expect: Expect | None = None,
    *,
    repeat_seconds: float | None,
    suppress: bool,
    counted: bool,
    run_twice: RunTwice | None = None,
) -> Verdict:
    """Judge a candidate over all cases.

    Args:
        task: The task.
        suite: Its cases.
        run: Runs them.
        expect: Asked for larger cases, where the suite's are too small to tell; without it none are tried.
        repeat_seconds: The second run takes the cheapest cases up to this sum; `None` leaves it out.
        suppress: Also leave out each kernel in turn (only where the run supports it).
        counted: Launches are counted by the run.
        run_twice: Where processes are dear: both runs, over all cases, in one of them.
    """
    both = await run_twice(suite.cases) if run_twice is not None and repeat_seconds is not None else None
    first = both.first if both is not None else await run(suite.cases, RunPlan(FIRST_POISON))
    verdict = judge(task, suite.cases, suite.expected, first)
    if not verdict.correct:
        return verdict
    second = None
    if both is not None:
        second = _called_again(task, suite, both.again)
    elif repeat_seconds is not None:
        second = await _repeated(task, _cheapest(suite, first, repeat_seconds), run)
    if second is not None:
        return replace(second, passed=verdict.passed - max(1, second.total - second.passed), total=verdict.total)
    if counted:
        seen = [_launches(task, c, r) for c, r in zip(suite.cases, first.runs, strict=True)]
        nothing = unlaunched(seen)
        if nothing is not None:
            return replace(verdict, status=Status.CHEAT, message=nothing.message)
        if not grows(seen) and not await grows_when_large(task, suite, seen, run):
            # One thread, or one block, doing all of it is honest work, but no translation.
            return replace(verdict, status=Status.WRONG, message=narrow(seen).message)
    if suppress:
        idle = await _idle_kernel(task, suite, first, run, expect)
        if idle is not None:
            message = f"the kernel {_placed(idle)} adds nothing: without it every output is the same; remove it"
            return replace(verdict, status=Status.CHEAT, message=message)
    return verdict


def _called_again(task: Task, suite: Suite, again: CaseRuns) -> Verdict | None:
    """The verdict of the second run in the same process if it differs."""
    other = judge(task, suite.cases[::-1], suite.expected[::-1], again)
    if other.correct:
        return None
    return replace(other, message=f"right at first, but called again with other memory: {other.message}")


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


async def grows_when_large(task: Task, suite: Suite, seen: Sequence[CaseLaunches], run: Run) -> bool:
    """Whether launches are wider on inputs that are larger than the tests', where each size in turn is large.

    A width needs no results, so the launches are only counted at first, which is quick at any size. What grows there
    is confirmed by running the smallest case that shows it. Where nothing does, widths may depend on results, and the
    cases are run, the smallest first, as far as time allows.
    """
    known = integers(task)
    fixed = not known.sizes and len({c.elements for c in seen}) == 1
    if fixed or _most_elements(known) <= GROWTH.wide:
        return max(c.threads for c in seen) >= GROWTH.fixed
    probes = await asyncio.to_thread(_probe_cases, task, suite)
    counted = await _probed(task, probes, RunPlan(FIRST_POISON, suppress=EVERY_KERNEL), run)
    showing = next((p for p, one in zip(probes, counted, strict=False) if grows([*seen, one])), None)
    if showing is not None:
        confirmed = await _probed(task, [showing], RunPlan(FIRST_POISON), run)
        return not confirmed or grows([*seen, *confirmed])
    return grows([*seen, *await _probed(task, probes, RunPlan(FIRST_POISON), run)])


_HUGE = 1 << 40


def _most_elements(known: Integers) -> float:
    """Of the largest buffer, where each size has a declared end; infinite where one has none."""
    ends = legal(dict.fromkeys(known.sizes, _HUGE), known)
    if ends is None or not ends or _HUGE in ends.values():
        return math.inf
    return max((count_of(e, {**dict.fromkeys(known.counts, 1), **ends}) or 0 for e in known.extents), default=math.inf)


async def _probed(task: Task, probes: Sequence[Case], plan: RunPlan, run: Run) -> list[CaseLaunches]:
    """Launches of cases, in order; fewer if the candidate is slow on them."""
    if not probes:
        return []
    result = await run(probes, replace(plan, seconds=GROWTH.probe_seconds))
    return [_launches(task, case, one) for case, one in zip(probes, result.runs, strict=False)]


def _probe_cases(task: Task, suite: Suite) -> list[Case]:
    """Cases in which each size in turn is large and the others small, then all are; the smallest first."""
    if task.module is not None:
        return sorted(suite.probes, key=_elements)
    known = integers(task)
    if not known.sizes:
        return []
    if task.mode == "program":
        base = {name: max(2, known.low[name]) for name in known.sizes}
    else:
        # Small, but with something to do: the least sizes that are all above one, if there are such.
        bases = [{n: int(c.values[n]) for n in known.sizes} for c in suite.cases]
        base = min(bases, key=lambda b: (min(b.values()) <= 1, sum(b.values())))
    found: list[Case] = []
    tried: list[dict[str, int]] = []
    for value in GROWTH.probes:
        wishes = [{**base, name: value} for name in known.sizes]
        if len(known.sizes) > 1:
            wishes.append(dict.fromkeys(known.sizes, value))
        for wish in wishes:
            # What only counts iterations is one. A drop-in that was made for a range ends the process beyond it.
            sizes = legal({**dict.fromkeys(known.counts, 1), **wish}, known)
            if sizes is None or sizes in tried:
                continue
            tried.append(sizes)
            # Counted before anything of that size is made.
            if max((count_of(e, sizes) or 0 for e in known.extents), default=0) <= GROWTH.probe_elements:
                with contextlib.suppress(InputRefused):
                    found.append(sized_case(task, sizes, 0))
    return sorted(found, key=_elements)


async def _idle_kernel(task: Task, suite: Suite, first: CaseRuns, run: Run, expect: Expect | None) -> str | None:
    """A kernel without which every case still comes out right, `None` if each is needed.

    One that never gets wide beside the widest is not asked about: bookkeeping, or the corner of an iteration space,
    that turns out to change nothing hides no work. What is idle on the suite is tried on larger cases before it is
    called so: the second level of a scan has nothing to do until there are several blocks.
    """
    widths = _widths(first.runs)
    most = max(widths.values(), default=0)
    idle: list[str] = []
    needed: list[str] = []
    for kernel in [kernel for kernel, threads in widths.items() if GROWTH.idle_share * threads >= most]:
        chosen = [i for i, r in enumerate(first.runs) if kernel in r.kernels]
        cases = tuple(suite.cases[i] for i in chosen)
        expected = tuple(suite.expected[i] for i in chosen)
        without = await run(cases, RunPlan(SECOND_POISON, suppress=kernel))
        (idle if judge(task, cases, expected, without).correct else needed).append(kernel)
    for kernel in idle:
        if expect is None or not await _needed_when_large(task, suite, kernel, needed, run, expect):
            return kernel
    return None


def _widths(runs: Sequence[CaseRun]) -> dict[str, int]:
    """Threads of the widest launch of each launch statement."""
    widest: dict[str, int] = {}
    for one in runs:
        for kernel, threads in one.kernels.items():
            widest[kernel] = max(threads, widest.get(kernel, 0))
    return widest


async def _needed_when_large(
    task: Task, suite: Suite, kernel: str, needed: Sequence[str], run: Run, expect: Expect
) -> bool:
    """Whether a kernel that is idle on the suite is narrow beside a needed one, or changes a result, on larger cases.

    No evidence in the time of the probes is none: the kernel stays idle.
    """
    largest = max(map(_elements, suite.cases))
    probes = [p for p in await asyncio.to_thread(_probe_cases, task, suite) if _elements(p) > largest]
    if not probes:
        return False
    counting = RunPlan(FIRST_POISON, suppress=EVERY_KERNEL, seconds=GROWTH.probe_seconds)
    counted = (await run(probes, counting)).runs
    widths = _widths(counted)
    if GROWTH.idle_share * widths.get(kernel, sys.maxsize) < max((widths.get(k, 0) for k in needed), default=0):
        return True
    left = GROWTH.idle_probes
    for probe, seen in zip(probes, counted, strict=False):
        if kernel not in seen.kernels or not left:
            continue
        left -= 1
        plan = RunPlan(SECOND_POISON, seconds=GROWTH.probe_seconds)
        whole = await run([probe], plan)
        if not whole.runs:
            return False  # larger ones are slower still
        expected = await expect([probe])
        without = await run([probe], replace(plan, suppress=kernel))
        if judge(task, [probe], expected, whole).correct and not judge(task, [probe], expected, without).correct:
            return True
    return False


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
    written = [case.values[p.name].size for p in task.buffers if p.written and p.name in case.values]
    return CaseLaunches(
        _elements(case), run.launches or 0, run.threads, bool(task.returns or sum(written) or case.stdin or task.module)
    )


def _elements(case: Case) -> int:
    """Of the largest buffer; of a program, the words of its input."""
    sizes = [value.size for value in case.values.values() if value.ndim]
    return max(sizes, default=len(case.stdin.split()))
