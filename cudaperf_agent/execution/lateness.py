"""How long a process was ready to run and had to wait for a processor, by the kernel's own account.

On a busy machine that is most of what a clock in one process adds to a call of another. Nothing inside the process can
change what is counted, but by keeping its own processors busy.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

_DEEPEST = 8


def waited_seconds(pid: int) -> float:
    """What the main thread of a process, or a thread of this one, has waited so far: only differences mean anything.

    0 for process 0, and where the kernel does not tell.
    """
    try:
        return 1e-9 * int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) if pid else 0.0
    except (OSError, ValueError, IndexError):
        return 0.0


def own_waited_seconds() -> float:
    """The same of the calling thread."""
    return waited_seconds(threading.get_native_id())


def process_within(pid: int, program: str) -> int:
    """The process that runs `program`: `pid` or, where that is a sandbox, one below it; 0 if there is none such."""
    for _ in range(_DEEPEST):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if arguments[0] == os.fsencode(program):
                return pid
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return 0
        if not children:
            return 0
        pid = int(children[0])
    return 0
