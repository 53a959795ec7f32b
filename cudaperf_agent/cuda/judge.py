"""From what a candidate's process returned to a verdict: made here, in the parent, from raw outputs."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cudaperf_agent.cuda.readable import readable_inputs
from cudaperf_agent.cuda.verdict import FailedCase, Report, Status, Verdict
from cudaperf_agent.cuda.work import counted
from cudaperf_agent.execution.child import ChildResult
from cudaperf_agent.execution.native import Fault
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Comparison, Mismatch, Task, Value

_LAUNCH = frozenset({"launch-config"})
_DROPIN_MESSAGE = re.compile(
    r"^(?P<name>\w+): (?P<step>launching|running|allocating[^:]*|copying[^:]*): (?P<text>.*)$", re.M
)
_TOO_LONG = "the launch timed out"  # cudaErrorLaunchTimeout
_RUNNER_CANNOT_LOAD = 71
_RUNNER_FAULT = 128


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a case whatever its outputs are, one sentence, with the line where one is to blame."""

    status: Status
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CaseRun:
    """One case that came back.

    Attributes:
        outputs: By name, as `tasks.compare` takes them.
        seconds: By the child's clock.
        underrun: Bytes before a buffer were changed.
        reports: Findings of a checker that make the run wrong.
        notes: Findings that do not.
        unsupported: What the emulator could not do, `None` if nothing.
        launches: Kernel launches, `None` where they cannot be counted.
        threads: Threads of the widest launch.
        kernels: Threads of the widest launch of each launch statement, by ``kernel@line``.
        problem: What else is wrong with it.
        writes: Of global memory, where the emulator counts them.
        span: Accesses of the busiest thread, added up over launches, likewise.
    """

    outputs: dict[str, Value]
    seconds: float
    underrun: bool = False
    reports: tuple[Report, ...] = ()
    notes: tuple[Report, ...] = ()
    unsupported: str | None = None
    launches: int | None = None
    threads: int = 0
    kernels: dict[str, int] = field(default_factory=dict)
    problem: Problem | None = None
    writes: int = 0
    span: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class CaseRuns:
    """All cases of one child, in order; fewer than were asked for if the child ended early."""

    runs: tuple[CaseRun, ...]
    fault: Fault | None
    child: ChildResult


def judge(task: Task, cases: Sequence[Case], expected: Sequence[Expected], result: CaseRuns) -> Verdict:
    """Status, pass rate and first failure of one run over `cases`."""
    passed, worst = 0, 0.0
    failures: list[Verdict] = []
    reports: dict[tuple[str, int | None, str], Report] = {}
    for case, wanted, run in zip(cases, expected, result.runs, strict=False):
        for report in (*run.reports, *run.notes):
            key = (report.kind, report.line, report.message if report.line is None else "")
            known = reports.get(key)
            reports[key] = replace(known, count=known.count + report.count) if known else report
        comparison = compare(task, case, wanted, run.outputs)
        failure = _failure(task, case, run, comparison)
        if failure is None:
            passed += 1
            worst = max(worst, comparison.worst_error)
        else:
            failures.append(failure)
    early = _ended_early(task, cases, result)
    if early is not None:
        failures.append(early)
    findings = tuple(reports.values())
    if not failures:
        profile = counted(sum(r.writes for r in result.runs), sum(r.span for r in result.runs))
        return Verdict(
            Status.CORRECT, "", passed=passed, total=len(cases), worst_error=worst, reports=findings, profile=profile
        )
    main = min(failures, key=lambda v: _PRECEDENCE.index(v.status))
    return replace(main, passed=passed, total=len(cases), worst_error=worst, reports=findings)


# What is told first where several cases fail in different ways: the cause before its consequence.
_PRECEDENCE = (
    Status.UNSUPPORTED,
    Status.CHEAT,
    Status.MEMORY_ERROR,
    Status.LAUNCH_ERROR,
    Status.TIMEOUT,
    Status.CRASH,
    Status.WRONG,
)


def _failure(task: Task, case: Case, run: CaseRun, comparison: Comparison) -> Verdict | None:
    if run.unsupported is not None:
        return _failed(Status.UNSUPPORTED, task, case, f"the emulator cannot run this: {run.unsupported}")
    if run.reports:
        first = run.reports[0]
        status = Status.LAUNCH_ERROR if first.kind in _LAUNCH else Status.MEMORY_ERROR
        place = f" (line {first.line})" if first.line else ""
        right = ", although the output is right" if comparison.ok else ""
        return _failed(status, task, case, f"{first.message}{place}{right}", comparison.mismatch)
    if run.problem is not None:
        place = f"line {run.problem.line}: " if run.problem.line else ""
        return _failed(run.problem.status, task, case, f"{place}{run.problem.message}")
    if run.underrun:
        return _failed(Status.MEMORY_ERROR, task, case, "bytes just before a host buffer were changed")
    if not comparison.ok:
        return _failed(Status.WRONG, task, case, _sentence(comparison.mismatch), comparison.mismatch)
    return None


def _failed(status: Status, task: Task, case: Case, message: str, mismatch: Mismatch | None = None) -> Verdict:
    failure = FailedCase(
        name=case.name,
        inputs=readable_inputs(task, case),
        message=message,
        output=mismatch.output if mismatch else "",
        index=mismatch.index if mismatch else None,
        expected=mismatch.expected if mismatch else "",
        got=mismatch.got if mismatch else "",
        error=mismatch.error if mismatch else None,
        allowed=mismatch.allowed if mismatch else None,
    )
    return Verdict(status, f"{message} [case {case.name}]", failure=failure)


def _sentence(mismatch: Mismatch | None) -> str:
    if mismatch is None:
        return "the output is wrong"
    place = mismatch.output if mismatch.total <= 1 else f"{mismatch.output}[{mismatch.index}]"
    text = f"{place} is {mismatch.got}, expected {mismatch.expected}"
    if mismatch.error is not None and mismatch.allowed is not None:
        text += f" (off by {mismatch.error:.3g}, allowed {mismatch.allowed:.3g})"
    if mismatch.count > 1:
        text += f"; {mismatch.count} of {mismatch.total} elements differ"
    return text


def _ended_early(task: Task, cases: Sequence[Case], result: CaseRuns) -> Verdict | None:
    """What happened in the case that did not come back, `None` if all did."""
    child = result.child
    if len(result.runs) >= len(cases) and child.ok:
        return None
    case = cases[min(len(result.runs), len(cases) - 1)]
    said = child.stderr.decode("utf-8", "replace")
    if child.timed_out:
        return _failed(Status.TIMEOUT, task, case, f"it did not end within {child.seconds:.3g} s")
    if child.out_of_memory:
        return _failed(Status.CRASH, task, case, "it took more memory than it may")
    if result.fault is not None:
        return _failed(Status.MEMORY_ERROR, task, case, _fault_sentence(task, result.fault))
    if child.returncode == _RUNNER_CANNOT_LOAD:
        return _failed(Status.CRASH, task, case, f"the library does not load: {_last_line(said)}")
    own = _DROPIN_MESSAGE.search(said)
    if own:
        kind = Status.LAUNCH_ERROR if own.group("step") in ("launching", "running") else Status.CRASH
        kind = Status.TIMEOUT if _TOO_LONG in own.group("text") else kind
        return _failed(kind, task, case, f"CUDA error while {own.group('step')}: {own.group('text')}")
    number = _signal_of(child.returncode)
    if number:
        return _failed(Status.CRASH, task, case, f"the process died of {number}{_tail(said)}")
    return _failed(
        Status.CRASH, task, case, f"it ended the process itself with exit status {child.returncode}{_tail(said)}"
    )


def _fault_sentence(task: Task, fault: Fault) -> str:
    verb = "write" if fault.writing else "read"
    if fault.argument is None:
        return f"host code {verb}s at an address that is in no buffer ({_signal_name(fault.signal)})"
    names = [p.name for p in task.inputs()]
    name = names[fault.argument] if fault.argument < len(names) else "the result"
    return f"host code {verb}s outside `{name}`, {fault.offset} bytes from its start"


def _signal_of(returncode: int) -> str:
    if returncode < 0:
        return _signal_name(-returncode)
    # A sandbox passes a signal on as 128 + number.
    return _signal_name(returncode - _RUNNER_FAULT) if _RUNNER_FAULT < returncode < _RUNNER_FAULT + 65 else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def _tail(said: str) -> str:
    return f": {_last_line(said)}" if said.strip() else ""
