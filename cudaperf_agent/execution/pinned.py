"""Commands on one processor, so that what is timed does not wander between caches."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cudaperf_agent.execution.native import Wrap


def one_core() -> int:
    """The processor that single-threaded times are taken on: the last that this process may use.

    The first is where most interrupts are served.
    """
    return max(os.sched_getaffinity(0))


def pinned(wrap: Wrap | None, core: int) -> Wrap | None:
    """`wrap`, with all that it starts on one processor; as it is where there is no ``taskset``."""
    taskset = shutil.which("taskset")
    if taskset is None:
        return wrap

    def both(argv: list[str], folder: Path) -> list[str]:
        return [taskset, "--cpu-list", str(core), *(wrap(argv, folder) if wrap else argv)]

    return both
