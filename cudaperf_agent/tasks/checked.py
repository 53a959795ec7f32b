"""Runs the C under the sanitizers and guard pages, and says in words where it leaves the language or its buffers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import ChildResult, Limits
from cudaperf_agent.execution.native import Fault, NativeRun, Wrap, call_native
from cudaperf_agent.tasks.model import Case, Task, Value
from cudaperf_agent.tasks.program import run_program
from cudaperf_agent.tasks.reference_build import Build, compiler, require_library
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name

CHECK_LIMITS = Limits(seconds=30.0)

_UNDEFINED = re.compile(r"^(?P<file>.+?):(?P<line>\d+):\d+: runtime error: (?P<message>.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (?P<message>[\w-]+)")
_FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ in \S+ (?P<file>.+?):(?P<line>\d+)(?::\d+)?$", re.MULTILINE)
_OUR_FAILURES = (70, 71, 126, 127)  # of the runner (a bad request, no library) and of `env` (no runner)
_PLAIN_FILL = 0x3F  # as a float of any width a harmless number: not a NaN that the C never made
_OPTIONS = "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1"


@dataclass(frozen=True, slots=True)
class Finding:
    """Why one call of the C is not legal.

    Attributes:
        kind: ``bounds`` (outside a buffer or an object), ``undefined`` (other undefined behaviour), ``crash``,
            ``timeout`` or ``memory``.
        message: What happened, without the place.
        case: Name of the case.
        line: 1-based line of the C, where it is known.
        parameter: The buffer that was left, if it was a parameter's.
        index: The element of it that was meant, negative before its start.
    """

    kind: Literal["bounds", "undefined", "crash", "timeout", "memory"]
    message: str
    case: str
    line: int | None = None
    parameter: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CheckedRun:
    """Outputs of the calls that were legal, in order, and what ended the run if something did."""

    outputs: tuple[dict[str, Value], ...]
    finding: Finding | None


async def run_checked(
    task: Task, cases: Sequence[Case], *, wrap: Wrap | None = None, limits: Limits = CHECK_LIMITS
) -> CheckedRun:
    """Call the C's checked build for each case until one is not legal.

    Buffers end at a guard page; then all is run again with buffers that begin at one. What neither sees: reads of
    uninitialised variables, and accesses that jump over a guard page into memory that happens to be there.

    Raises:
        InputRefused: gcc does not compile the C.
        BackendUnavailable: There is no gcc, it has no sanitizers, or the runner does not work here.
    """
    library = await require_library(task, Build.CHECKED)
    run = await _call(library, task, cases, wrap, limits)
    outputs = tuple(outputs_by_name(task, outcome.outputs) for outcome in run.outcomes)
    if len(outputs) == len(cases):
        left = await run_guarded(task, cases, wrap=wrap, limits=limits, left=True)
        if left.fault is None:
            return CheckedRun(outputs, None)
        done = len(left.outcomes)
        finding = await _explained(library, task, cases[done], left.fault, wrap, limits, left=True)
        return CheckedRun(outputs[:done], finding)
    culprit = cases[len(outputs)]
    if run.fault is not None:
        return CheckedRun(outputs, await _explained(library, task, culprit, run.fault, wrap, limits))
    return CheckedRun(outputs, _of_child(task, culprit.name, run.child, run.child.stderr.decode("utf-8", "replace")))


async def check_program(
    task: Task, cases: Sequence[Case], *, wrap: Wrap | None = None, limits: Limits = CHECK_LIMITS
) -> Finding | None:
    """Run the C program's checked build on each standard input; the first that is not legal is returned."""
    program = await require_library(task, Build.CHECKED)
    for case in cases:
        child = await run_program(program, case, wrap=wrap, limits=limits, env={"ASAN_OPTIONS": _OPTIONS})
        words = child.stderr.decode("utf-8", "replace")
        bad = child.returncode < 0 or child.timed_out or child.out_of_memory
        if bad or _UNDEFINED.search(words) or _ADDRESS.search(words):
            return _of_child(task, case.name, child, words)
    return None


async def run_guarded(
    task: Task, cases: Sequence[Case], *, wrap: Wrap | None = None, limits: Limits = CHECK_LIMITS, left: bool = False
) -> NativeRun:
    """Call the plain build with buffers that end (or, `left`, begin) at a guard page: a fault names buffer and byte."""
    library = await require_library(task, Build.PLAIN)
    calls = [native_arguments(task, case) for case in cases]
    env = {"CUDAPERF_PLACE_LEFT": "1"} if left else {}
    return await call_native(library, calls, limits=limits, wrap=wrap, env=env)


async def _call(
    library: Path,
    task: Task,
    cases: Sequence[Case],
    wrap: Wrap | None,
    limits: Limits,
    options: str = _OPTIONS,
    left: bool = False,
) -> NativeRun:
    def preloaded(argv: list[str], folder: Path) -> list[str]:
        # Inside the sandbox, so that the sanitizer is loaded into the runner and into nothing around it.
        placed = ["CUDAPERF_PLACE_LEFT=1"] if left else []
        inner = ["/usr/bin/env", f"LD_PRELOAD={_asan_runtime()}", f"ASAN_OPTIONS={options}", *placed, *argv]
        return wrap(inner, folder) if wrap else inner

    calls = [native_arguments(task, case, fill=_PLAIN_FILL) for case in cases]
    return await call_native(library, calls, limits=limits, wrap=preloaded)


async def _explained(
    library: Path, task: Task, case: Case, fault: Fault, wrap: Wrap | None, limits: Limits, left: bool = False
) -> Finding:
    """A fault in words: the runner's own handler names the buffer; the sanitizer's, in a second run, names the line."""
    options = f"{_OPTIONS}:handle_segv=2:handle_sigbus=2"
    again = await _call(library, task, [case], wrap, limits, options, left)
    return _of_fault(task, case, fault, _own_line(task, again.child.stderr.decode("utf-8", "replace")))


@lru_cache(maxsize=1)
def _asan_runtime() -> str:
    argv = [compiler(), "-print-file-name=libasan.so"]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    if not Path(found).is_absolute():
        raise BackendUnavailable(
            "gcc has no address sanitizer, and the C cannot be checked without it",
            hint="Install gcc's sanitizer libraries, e.g. `apt-get install libgcc-12-dev` for gcc 12.",
        )
    return str(Path(found).resolve())


def _of_fault(task: Task, case: Case, fault: Fault, line: int | None) -> Finding:
    inputs = list(task.inputs())
    verb = "writes" if fault.writing else "reads"
    if fault.argument is None or fault.argument >= len(inputs):
        return Finding("crash", f"the C {verb} memory that belongs to no parameter", case.name, line)
    parameter = inputs[fault.argument]
    size = parameter.type.size
    count = int(case.values[parameter.name].size)
    index = fault.offset // size
    place = f"`{parameter.name}[{index}]`, but `{parameter.name}` has {count} element{'' if count == 1 else 's'}"
    return Finding("bounds", f"the C {verb} {place}", case.name, line, parameter.name, index)


def _of_child(task: Task, case: str, child: ChildResult, words: str) -> Finding:
    if child.timed_out:
        return Finding("timeout", f"the C does not end within {child.seconds:.0f} s", case)
    if child.out_of_memory:
        return Finding("memory", "the C uses too much memory", case)
    undefined = _UNDEFINED.search(words)
    if undefined:
        return Finding("undefined", undefined["message"], case, int(undefined["line"]))
    address = _ADDRESS.search(words)
    if address:
        return Finding("bounds", f"the C has a {address['message']}", case, _own_line(task, words))
    if child.returncode in _OUR_FAILURES:
        raise BackendUnavailable(
            f"the C could not be run: {words.strip()[-300:] or child.returncode}",
            hint="Run `cudaperf doctor`: the sanitizers, the sandbox or the cache folder do not work here.",
        )
    ended = f"signal {-child.returncode}" if child.returncode < 0 else f"status {child.returncode}"
    return Finding("crash", f"the C ends the process with {ended}", case)


def _own_line(task: Task, words: str) -> int | None:
    """The innermost frame of a sanitizer's stack that lies in the task's file."""
    name = Path(task.path).name
    return next((int(f["line"]) for f in _FRAME.finditer(words) if Path(f["file"]).name == name), None)


def with_line(task: Task, finding: Finding) -> Finding:
    """The finding, placed at the entry's definition where no better line is known."""
    return finding if finding.line else replace(finding, line=task.first_line)
