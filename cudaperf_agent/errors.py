"""The one family of errors: each says what happened, where, and what to do next.

A failed kernel, a compile error or a wrong answer is a *result* with a status, never one of these.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_OK = 0
EXIT_NO_KERNEL = 1
EXIT_USAGE = 2
EXIT_BACKEND = 3
EXIT_BUDGET = 4
EXIT_INTERRUPTED = 130


class CudaPerfError(Exception):
    """Base of the family.

    Args:
        message: What happened, one sentence.
        where: The place, as ``file:line`` or a setting's name.
        hint: What to do next; where a line of text would mend it, that very line.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = EXIT_USAGE

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.hint}" if self.hint else ""
        return f"{place}{self.message}{advice}"

    def as_dict(self) -> dict[str, str | None]:
        """The object that ``--json`` prints under ``error``."""
        return {"kind": self.kind, "message": self.message, "where": self.where, "hint": self.hint}


def reading_hint(error: OSError) -> str:
    """What to do about a file of the user's that could not be read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "Check the name."
    if isinstance(error, IsADirectoryError):
        return "This is a folder: name a file in it."
    if isinstance(error, PermissionError):
        return "You may not read it: `ls -l` shows whose it is, `chmod u+r` gives the owner that right."
    return "Name a file on a disk that can be read, a copy for instance."


class UsageError(CudaPerfError):
    """A flag, a setting or a file name is wrong."""

    kind = "usage"


class ConfigError(CudaPerfError):
    """A configuration file or environment variable is wrong."""

    kind = "configuration"


class InputRefused(CudaPerfError):
    """The source cannot be a task: it does not parse, is ambiguous, or has undefined behaviour on declared inputs."""

    kind = "refused"


class BackendUnavailable(CudaPerfError):
    """A tool, an endpoint or a device that is needed is not there."""

    kind = "backend"
    exit_code = EXIT_BACKEND


class BudgetSpent(CudaPerfError):
    """The time budget ran out before a result was there."""

    kind = "budget"
    exit_code = EXIT_BUDGET


class StoreError(CudaPerfError):
    """The database cannot be opened, is of a newer version, or lacks what was asked for."""

    kind = "store"
