"""Whose fault a failed tool is: the candidate's, which is a verdict, or the machine's, which is an error kept nowhere.

A message with a line of the candidate is the candidate's. For anything else the tool is tried again on something that
must work. Words of the system (a full disk, no memory for a process) are the machine's whatever the trial says, since a
trial needs less than the candidate does. Not covered: a machine that fails only now and then, in a way that prints a
line of the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from cudaperf_agent.cuda.diagnostics import IN_WRAPPER
from cudaperf_agent.cuda.verdict import Diagnostic
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import ChildResult, Limits, run_child
from cudaperf_agent.execution.native import Wrap

_SYSTEM_WORDS = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|Resource temporarily unavailable"
    r"|Input/output error|Read-only file system|Too many open files|Stale file handle"
)
# What a shell or a sandbox ends with when it cannot start a command.
_NOT_STARTED = frozenset({1, 125, 126, 127})
_TRIAL_LIMITS = Limits(seconds=10.0)
_QUOTED = 300


def is_candidates(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether an error is placed in a line of the candidate, or follows from how it declares its entry."""
    return any(d.severity == "error" and (d.line is not None or IN_WRAPPER in d.message) for d in diagnostics)


def refuse_system_trouble(tool: str, said: str) -> None:
    """Raise if a tool's message, which names no line of the candidate, is of a full disk or the like.

    Raises:
        BackendUnavailable: It is.
    """
    found = _SYSTEM_WORDS.search(said)
    if found:
        raise broken(tool, said[max(0, found.start() - _QUOTED // 2) :])


def broken(tool: str, said: str) -> BackendUnavailable:
    """The error for a tool that fails on something that must work."""
    return BackendUnavailable(
        f"{tool} does not work here: {said.strip()[:_QUOTED] or 'it said nothing'}",
        hint="See `cudaperf doctor`; check the space on the disk and the sandbox.",
    )


async def require_started(child: ChildResult, wrap: Wrap | None) -> None:
    """Tell a sandbox that cannot start a command from a command that fails.

    Raises:
        BackendUnavailable: Nothing starts in the sandbox.
    """
    if child.returncode not in _NOT_STARTED or child.timed_out or child.out_of_memory:
        return
    with TemporaryDirectory(prefix="cudaperf-trial-") as scratch:
        argv = ["true"]
        trial = await run_child(wrap(argv, Path(scratch)) if wrap else argv, limits=_TRIAL_LIMITS, cwd=Path(scratch))
    if not trial.ok:
        said = trial.stderr.decode("utf-8", "replace") or child.stderr.decode("utf-8", "replace")
        raise broken("the sandbox", said)
