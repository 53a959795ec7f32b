"""Kernels over one domain that do not wait for each other become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cudaperf_agent.codegen.modules.kernels import Kernel, MapKernel, RowKernel, Schedule, Sink
from cudaperf_agent.codegen.modules.tensors import Buffer, Contraction, Tensor


def merge(schedule: Schedule, written: Mapping[int, Buffer]) -> None:
    """Kernels over one domain that do not wait for each other become one."""
    merged: list[Kernel] = []
    for kernel in schedule.kernels:
        previous = merged[-1] if merged else None
        if previous is None or not _joined(previous, kernel, written):
            merged.append(kernel)
    schedule.kernels = merged


def _joined(first: Kernel, second: Kernel, written: Mapping[int, Buffer]) -> bool:
    if isinstance(first, MapKernel) and isinstance(second, MapKernel) and first.shape == second.shape:
        if _reads(second.sinks, {s.buffer.name for s in first.sinks}, written):
            return False
        first.sinks.extend(second.sinks)
        return True
    if (
        isinstance(first, RowKernel)
        and isinstance(second, RowKernel)
        and (first.shape, first.reduced, first.worker, first.threads)
        == (second.shape, second.reduced, second.worker, second.threads)
        and not any(isinstance(r, Contraction) for k in (first, second) for level in k.levels for r, _ in level)
    ):
        names = {s.buffer.name for s in (*first.row_sinks, *first.full_sinks)}
        if _reads([*second.row_sinks, *second.full_sinks], names, written):
            return False
        for level, found in enumerate(second.levels):
            if level == len(first.levels):
                first.levels.append([])
            present = [(id(r), i) for at in first.levels for r, i in at]
            first.levels[level].extend(p for p in found if (id(p[0]), p[1]) not in present)
        first.row_sinks.extend(second.row_sinks)
        first.full_sinks.extend(second.full_sinks)
        return True
    return False


def _reads(sinks: Sequence[Sink], names: set[str], written: Mapping[int, Buffer]) -> bool:
    """Whether what is written depends on given buffers."""
    seen: set[int] = set()
    stack: list[Tensor] = [p for s in sinks for p in s.tensor.parts]
    while stack:
        tensor = stack.pop()
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        buffer = written.get(id(tensor))
        if buffer is not None:
            if buffer.name in names:
                return True
            continue
        stack += tensor.parts
    return False
