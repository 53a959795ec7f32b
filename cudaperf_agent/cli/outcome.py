"""How a run's end becomes an exit code and, where it is no success, an error with a message and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cudaperf_agent.errors import (
    EXIT_BACKEND,
    EXIT_BUDGET,
    EXIT_INTERRUPTED,
    EXIT_NO_KERNEL,
    EXIT_USAGE,
    CudaPerfError,
)

if TYPE_CHECKING:
    from graph.results import RunResult

_EXIT_CODES = {
    "no_kernel": EXIT_NO_KERNEL,
    "usage": EXIT_USAGE,
    "configuration": EXIT_USAGE,
    "refused": EXIT_USAGE,
    "store": EXIT_USAGE,
    "budget": EXIT_BUDGET,
    "interrupted": EXIT_INTERRUPTED,
}


class RunEnded(CudaPerfError):
    """A run came to an end without a correct candidate.

    Attributes:
        told_kind: ``no_kernel``, ``interrupted``, ``budget``, or the kind of the error that stopped a trajectory.
        report: What is known of the run, for ``--json``; `None` if it had hardly begun.
    """

    def __init__(self, kind: str, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint)
        self.told_kind = kind
        self.exit_code = _EXIT_CODES.get(kind, EXIT_BACKEND)  # type: ignore[misc]
        self.report: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, str | None]:
        """With the kind of this end."""
        return {**super().as_dict(), "kind": self.told_kind}


def interrupted(run_id: str | None, extra: str = "") -> RunEnded:
    """What is said when the user stopped a run."""
    hint = f"go on with: cudaperf resume {run_id}{extra}" if run_id else "nothing was begun yet"
    return RunEnded("interrupted", "interrupted", hint=hint)


def trouble(result: RunResult, path: str, extra: str = "") -> RunEnded | None:
    """The error that a run's end amounts to, `None` if it has a correct candidate.

    Args:
        result: The run.
        path: Of the C file, or of the module's Python file.
        extra: Options that a `cudaperf resume` needs again.
    """
    again = f"cudaperf resume {result.run}{extra}"
    if result.status == "interrupted":
        return interrupted(result.run, extra)
    if result.best is not None:
        return None
    if result.status == "error":
        error = result.error or {}
        hint = error.get("hint")
        return RunEnded(
            error.get("kind") or "internal",
            error.get("message") or result.reason,
            where=error.get("where"),
            hint=f"{hint}; then: {again}" if hint else f"to try again: {again}",
        )
    if any(t.reason == "budget" for t in result.trajectories):
        return RunEnded(
            "budget", "the time budget ran out before a candidate was correct", where=path, hint="raise --time-budget"
        )
    return _no_kernel(result, path)


def _no_kernel(result: RunResult, path: str) -> RunEnded:
    details = f"the attempts: cudaperf show {result.run}"
    judged = [a for a in result.attempts if a.verdict is not None]
    if not judged:
        # The decline names file and line itself where it can.
        why = result.reason.removeprefix("declined: ")
        return RunEnded(
            "no_kernel", f"not translated: {why}", where=None if path in why else path, hint=_after_decline(why, path)
        )
    # One that the hidden cases refused came furthest, and its visible verdict would say that it is correct.
    chosen = [a for a in judged if a.hidden_verdict is not None]
    last = chosen[-1].hidden_verdict if chosen else judged[-1].verdict
    assert last is not None
    which = "the last one that was put to the hidden cases" if chosen else "the last one"
    why = " ".join(last.message.split())[:300]
    told = f"; {which}: {last.status.value}" + (f", {why}" if why else "")
    return RunEnded(
        "no_kernel", f"none of {len(judged)} candidates is correct ({result.reason}){told}", where=path, hint=details
    )


def _after_decline(why: str, path: str) -> str:
    if why.startswith("the script "):
        return "add answers to the script"
    part = "module" if path.endswith(".py") else "C"
    return f"rewrite that part of the {part}, or let a model try: set CUDAPERF_ENDPOINT__URL and use --policy openai"
