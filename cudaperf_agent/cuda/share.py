"""The profile of a measured candidate: where its time goes, and what share of this machine it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cudaperf_agent.cuda.ceilings import Ceilings
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.timing import Contents
from cudaperf_agent.cuda.trace import Trace
from cudaperf_agent.cuda.verdict import Timing
from cudaperf_agent.tasks.model import Task

_LEAST_SHARE = 0.05  # of a call: what is left of it once an empty call's time is taken off


def profile_of(
    timings: Sequence[Timing],
    task: Task,
    contents: Contents,
    gpu: Gpu | None,
    ceilings: Ceilings | None,
    trace: Trace | None,
    floor: float,
) -> dict[str, Any]:
    """Shares and rates by name.

    ``busy_seconds`` is what the kernels took: by the trace, else the call less what an empty call takes. Bytes are each
    read buffer once and each written buffer once, however often the kernels touch them.
    """
    by_kind = {t.kind: t.median for t in timings}
    moved = contents.moved_bytes(task)
    found: dict[str, Any] = {"timed_bytes": contents.bytes, "moved_bytes": moved}
    if floor > 0:
        found["floor_seconds"] = floor
    if trace is not None:
        found["trace"] = trace.profile()
    device, whole = by_kind.get("device"), by_kind.get("end_to_end")
    if device and whole:
        found["copies_and_allocation_share"] = max(0.0, 1.0 - device / whole)
    busy = _busy(device, ceilings, trace)
    if busy is None:
        return found
    found["busy_seconds"] = busy
    found["busy_by"] = "trace of the kernels" if trace is not None and trace.kernel_seconds else "device time"
    rate = moved / busy
    found["bytes_per_second"] = rate
    if gpu is not None and gpu.datasheet_bandwidth:
        found["share_of_datasheet_bandwidth"] = rate / gpu.datasheet_bandwidth
    if ceilings is None:
        return found
    found["peak_bytes_per_second"] = ceilings.copy
    found["share_of_copy_bandwidth"] = rate / ceilings.copy
    found["null_call_seconds"] = ceilings.null_call_seconds
    operations = contents.operations(task)
    if operations is not None and operations.total > 0:
        peak = ceilings.f64 if operations.double else ceilings.f32
        found["flop"] = operations.total
        found["flop_per_byte"] = operations.total / max(1, moved)
        found["flop_per_second"] = operations.total / busy
        found["peak_flop_per_second"] = peak
        found["share_of_flop_rate"] = operations.total / busy / peak
    return found


def _busy(device: float | None, ceilings: Ceilings | None, trace: Trace | None) -> float | None:
    if trace is not None and trace.kernel_seconds:
        return trace.kernel_seconds
    if not device:
        return None
    empty = ceilings.null_call_seconds if ceilings is not None else 0.0
    return max(device - empty, _LEAST_SHARE * device)
