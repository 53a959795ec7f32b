"""Outputs of timed calls of a PyTorch candidate against what they must be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.modules.budget import leaf_of
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Task, Value


def problem_of(
    file: Path, kept: Sequence[dict[str, Any]], wanted: Expected, entries: Sequence[dict[str, Any]], most: int
) -> str | None:
    """What is wrong with the outputs of a timed call, `None` if nothing.

    Args:
        file: That the process wrote their bytes to.
        kept: What it says of each.
        wanted: What they must be.
        entries: Names, types and shapes that they must have.
        most: Bytes of one, at most.
    """
    outputs: dict[str, Value] = {}
    try:
        for entry, want in zip(kept, entries, strict=True):
            if "bytes" not in entry:
                return f"{want['name']} is no plain tensor on the device"
            if [entry["dtype"], entry["shape"]] != [want["dtype"], want["shape"]]:
                return f"{want['name']} has another type or shape"
            raw = _slice(file, int(entry["offset"]), int(entry["bytes"]), most)
            outputs[str(want["name"])] = leaf_of({**entry, "offset": 0}, raw)
    except (ValueError, KeyError, TypeError):
        return "the outputs cannot be read"
    task = Task("timed", "module", "", "")
    comparison = compare(task, Case(wanted.case, {}), wanted, outputs)
    if comparison.ok or comparison.mismatch is None:
        return None
    found = comparison.mismatch
    return f"{found.output}[{found.index}] is {found.got}, expected {found.expected}"


def _slice(path: Path, offset: int, size: int, most: int) -> bytes:
    """Part of a file that a stranger wrote; empty if it is no plain file."""
    if size > most:
        return b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        file.seek(offset)
        return file.read(size)
