"""The folder of compiled candidates: what was used last stays, up to a size."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.execution.paths import cache_dir

KINDS = ("nvcc", "emulated")


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much is kept.

    Attributes:
        bytes: Of all compiled candidates together.
        young_seconds: What was used more recently is never removed: a process may be about to run it.
    """

    bytes: int = 4 << 30
    young_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class _Entry:
    used: float
    size: int
    home: Path


def touch(home: Path) -> None:
    """Note that a compiled candidate was used."""
    with contextlib.suppress(OSError):
        os.utime(home)


def prune(limits: CacheLimits) -> int:
    """Remove what was not used for longest until the rest fits; the number of compiled candidates removed."""
    entries = sorted(_entries(), key=lambda e: e.used)
    total = sum(e.size for e in entries)
    oldest_kept = time.time() - limits.young_seconds
    removed = 0
    for entry in entries:
        if total <= limits.bytes or entry.used > oldest_kept:
            break
        shutil.rmtree(entry.home, ignore_errors=True)
        total -= entry.size
        removed += 1
    return removed


def _entries() -> list[_Entry]:
    found = []
    for kind in KINDS:
        for home in (cache_dir() / kind).glob("??/*"):
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in home.iterdir())
                found.append(_Entry(home.stat().st_mtime, size, home))
    return found
