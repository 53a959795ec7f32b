"""Where results go: looked at before the work, so that nobody waits for what cannot be written in the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cudaperf_agent.errors import UsageError


def check_out_folder(folder: Path, option: str = "--out", *, names: Iterable[str] = ()) -> None:
    """Refuse a folder that is not there and cannot be made, or that cannot be written to. Leaves nothing behind.

    Args:
        folder: Where files will be written.
        option: The option that names it, for the hint.
        names: The files, as far as they are known.

    Raises:
        UsageError: Something could not be written there.
    """
    hint = f"name another folder with {option}"
    _check_folder(folder, folder, hint)
    for name in names:
        _check_file(folder / name, hint)


def check_out_file(path: Path, option: str = "--out") -> None:
    """Refuse a file that could not be written, or whose folder could not be made. Changes nothing.

    Args:
        path: The file that will be written; one that is there will be overwritten.
        option: The option that names it, for the hint.

    Raises:
        UsageError: It could not be written.
    """
    _check_file(path, f"name another file with {option}")


@contextmanager
def writing_folder(folder: Path, option: str = "--out") -> Iterator[None]:
    """While results are written to a folder: what the system refuses becomes a message with a remedy.

    Raises:
        UsageError: They cannot be written.
    """
    with _told(folder, f"name another folder with {option}"):
        yield


@contextmanager
def writing_file(path: Path, option: str = "--out") -> Iterator[None]:
    """As `writing_folder`, for one file, whose folder is made.

    Raises:
        UsageError: It cannot be written.
    """
    with _told(path, f"name another file with {option}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        yield


def write_report(path: Path, text: str, marks: Sequence[str], option: str = "--out") -> None:
    """Write a report, over no file but an earlier report or an empty one; a device or a pipe takes it as it is.

    Args:
        path: The file; its folder is made.
        text: The report.
        marks: One of these is near the beginning of every report of the kind.
        option: The option that names the file, for the hint.

    Raises:
        UsageError: It cannot be written, or is somebody's other file.
    """
    with writing_file(path, option):
        if path.is_file():  # a pipe would be waited for, and a device may have no end
            with path.open(encoding="utf-8", errors="replace") as there:
                head = there.read(2000)
            if head and not any(mark in head for mark in marks):
                raise UsageError(
                    "this file is no report and would be overwritten",
                    where=str(path),
                    hint=f"name another file with {option}",
                )
        path.write_text(text, encoding="utf-8", errors="replace")


def _check_file(path: Path, hint: str) -> None:
    with _told(path, hint):
        if path.is_dir():
            raise UsageError("a folder, not a file", where=str(path), hint=hint)
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():
            _check_folder(path, path.parent, hint)
        elif not os.access(path, os.W_OK):  # a device or a pipe, whose reader would take a close for the end
            raise PermissionError(None, "permission denied")


def _check_folder(path: Path, folder: Path, hint: str) -> None:
    """Make a file without a name in the nearest folder that is there: permissions alone do not tell all."""
    with _told(path, hint):
        nearest = next(p for p in (folder, *folder.parents, Path()) if os.path.lexists(p))
        if not nearest.is_dir():
            raise UsageError(f"{nearest} is not a folder", where=str(path), hint=hint)
        with _told(path, hint, f"nothing can be written in {nearest}"):
            tempfile.TemporaryFile(dir=nearest).close()


@contextmanager
def _told(path: Path, hint: str, what: str = "the result cannot be written") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{what}: {why}", where=str(path), hint=hint) from None
