"""A folder of PyTorch modules in KernelBench's format: its levels, and which files can be tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.errors import CudaPerfError, UsageError
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.find import load_module_task
from cudaperf_agent.tasks.modules.spec import ModuleMode

_LEVEL = re.compile(r"level[_ ]?(\d+)", re.I)
_NUMBER = re.compile(r"(\d+)_")


@dataclass(frozen=True, slots=True)
class Problem:
    """One file of the folder.

    Attributes:
        path: Where it is.
        level: Of KernelBench, 1 to 4; `None` in a folder without levels.
        name: Of the file, without number and suffix.
        task: What it is, if it can be one.
        declined: Why not, one sentence with the line.
    """

    path: Path
    level: int | None
    name: str
    task: Task | None = None
    declined: str = ""


def read_folder(folder: Path, *, mode: ModuleMode = "pure-cuda") -> tuple[Problem, ...]:
    """The problems of a KernelBench checkout (or of its ``KernelBench`` folder), or of any folder of such files.

    Nothing is run; levels and numbers give the order.

    Raises:
        UsageError: It is no folder, or has no Python files.
    """
    if not folder.is_dir():
        raise UsageError(
            "not a folder", where=str(folder), hint="Name a KernelBench checkout, or a folder of .py files."
        )
    found = [_read(path, level, mode) for path, level in _files(folder)]
    if not found:
        raise UsageError(
            "the folder has no Python files with modules",
            where=str(folder),
            hint="KernelBench keeps them in KernelBench/level1 to level4.",
        )
    return tuple(found)


def _files(folder: Path) -> Iterator[tuple[Path, int | None]]:
    for place in (folder, folder / "KernelBench"):
        levels = (
            [(int(m[1]), p) for p in place.iterdir() if p.is_dir() and (m := _LEVEL.fullmatch(p.name))]
            if (place.is_dir())
            else []
        )
        if levels:
            for level, path in sorted(levels):
                yield from ((file, level) for file in _modules(path))
            return
    yield from ((file, None) for file in _modules(folder))


def _modules(folder: Path) -> list[Path]:
    return sorted((file for file in folder.glob("*.py") if file.name != "__init__.py"), key=_order)


def _order(path: Path) -> tuple[int, str]:
    match = _NUMBER.match(path.name)
    return int(match[1]) if match else 1 << 30, path.name


def _read(path: Path, level: int | None, mode: ModuleMode) -> Problem:
    name = _NUMBER.sub("", path.stem, count=1).strip("_")
    try:
        return Problem(path, level, name, load_module_task(path, mode=mode))
    except CudaPerfError as error:
        place = error.where.rpartition(":")[2] if error.where else ""
        line = f"line {place}: " if place.isdigit() else ""
        return Problem(path, level, name, None, line + error.message)
