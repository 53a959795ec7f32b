"""Memory that a timed process and its parent both map: contents to read in it, and outputs to write.

The kernel keeps the size fixed (sealed), so that a process which tries to shorten the area cannot kill its parent.
What lies where follows from the arguments' kinds and sizes alone, by the rule that `timer.cu` follows too: for each
content set each argument that is sent, then each that is returned, every one from a page's start.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cudaperf_agent.tasks.model import Case, Task, Value

BUFFER, SENT, RETURNED, SETUP_ONLY = 1, 2, 4, 8
PAGE = 4096


@dataclass(frozen=True, slots=True)
class SharedArgument:
    """One argument: its name, what it is (bits), and its size in bytes."""

    name: str
    kind: int
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies.

    Attributes:
        arguments: In the stub's order; a returned value comes last.
        sets: Content sets.
        contents: Offset by set and argument name.
        outputs: Offset by argument name.
        size: Bytes of it all.
        result: The type of the returned value, if there is one.
    """

    arguments: tuple[SharedArgument, ...]
    sets: int
    contents: tuple[dict[str, int], ...]
    outputs: dict[str, int]
    size: int
    result: np.dtype[np.generic] | None = None


def layout_of(task: Task, contents: Sequence[Case]) -> Layout:
    """The layout for content sets of one size."""
    own = {p.name for p in task.parameters}
    arguments: list[SharedArgument] = []
    for parameter in task.inputs():
        kind = BUFFER if parameter.pointer else 0
        kind |= SENT if not parameter.pointer or parameter.read else 0
        kind |= RETURNED if parameter.pointer and parameter.written else 0
        kind |= 0 if parameter.name in own else SETUP_ONLY
        arguments.append(SharedArgument(parameter.name, kind, max(c.values[parameter.name].nbytes for c in contents)))
    if task.returns:
        arguments.append(SharedArgument("return", BUFFER | RETURNED, task.returns.size))
    at = 0

    def placed(bit: int) -> dict[str, int]:
        nonlocal at
        found = {}
        for argument in arguments:
            if argument.kind & bit:
                found[argument.name] = at
                at += -(-argument.size // PAGE) * PAGE
        return found

    sets = tuple(placed(SENT) for _ in contents)
    outputs = placed(RETURNED)
    result = task.returns.dtype if task.returns else None
    return Layout(tuple(arguments), len(contents), sets, outputs, max(at, PAGE), result)


class SharedArea:
    """One such memory; empty until it is filled.

    Args:
        layout: What lies where.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.descriptor = os.memfd_create("cudaperf", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, layout.size)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
            self._bytes = np.frombuffer(mmap.mmap(self.descriptor, layout.size), np.uint8)
        except BaseException:
            os.close(self.descriptor)
            raise

    def fill(self, contents: Sequence[Case]) -> None:
        """Put the contents in."""
        for case, places in zip(contents, self.layout.contents, strict=True):
            for name, at in places.items():
                data = np.ascontiguousarray(case.values[name]).reshape(-1).view(np.uint8)
                np.copyto(self._bytes[at : at + data.size], data)

    def outputs(self, case: Case) -> dict[str, Value]:
        """What lies in the outputs now, by name; `case` gives types and shapes. Not copied."""
        found: dict[str, Value] = {}
        for name, at in self.layout.outputs.items():
            if name == "return" and self.layout.result is not None:
                size = self.layout.result.itemsize
                found[name] = self._bytes[at : at + size].view(self.layout.result).reshape(())
            else:
                like = case.values[name]
                found[name] = self._bytes[at : at + like.nbytes].view(like.dtype).reshape(like.shape)
        return found

    def close(self) -> None:
        """Give it back; it is gone once nothing looks into it any more."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
