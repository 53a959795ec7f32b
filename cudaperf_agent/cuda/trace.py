"""What a traced run says: time of each kernel, of copies and allocation, and the time that is left without those.

A trace explains and never decides: it is recorded (`tracer.cpp`) inside the candidate's process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cudaperf_agent.cuda.occupancy import theoretical_occupancy
from cudaperf_agent.cuda.verdict import Timing

_TO_DEVICE, _TO_HOST = 1, 2  # CUpti_ActivityMemcpyKind
_ALLOCATES = ("Malloc", "Free", "HostAlloc")
_CALLS_BACK = ("HostFunc", "AddCallback")
_STRIDED = ("2D", "3D", "Array")
_NAME = 120


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One launch: when it ran, in nanoseconds, and its shape."""

    name: str
    start: int
    end: int
    blocks: int
    threads: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Interval:
    """Something that took from `start` to `end`, in nanoseconds."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CallTrace:
    """One call.

    Attributes:
        wall: Of the whole call, by the clock of the trace.
        kernels: Launches, in the order of the records.
        copies: Seconds by kind: ``to_device``, ``to_host``, ``on_device``, ``memset``.
        copied_bytes: By the same names.
        hidden: Runtime calls that allocate, free, or copy contiguously between host and device.
        busy: Kernels, memsets and copies on the device.
        calls_back: The host is called back: what it does meanwhile is not recorded.
    """

    wall: Interval
    kernels: tuple[KernelRecord, ...]
    copies: dict[str, float]
    copied_bytes: dict[str, int]
    hidden: tuple[Interval, ...]
    busy: tuple[Interval, ...]
    calls_back: bool

    @property
    def kernel_seconds(self) -> float:
        """Time in which any kernel ran."""
        return length(Interval(k.start, k.end) for k in self.kernels) * 1e-9

    @property
    def resident_seconds(self) -> float:
        """The call less allocation and contiguous copies, as far as the device did nothing else meanwhile."""
        whole = (self.wall.end - self.wall.start) * 1e-9
        if self.calls_back:
            return whole
        return whole - length(without(self.hidden, self.busy)) * 1e-9


@dataclass(frozen=True, slots=True)
class Trace:
    """Several calls in one process; the first, which is cold, left out where there are others."""

    calls: tuple[CallTrace, ...]
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def kernel_seconds(self) -> float:
        """Median over the calls."""
        return median([c.kernel_seconds for c in self.calls]) if self.calls else 0.0

    def timings(self, main: Timing) -> list[Timing]:
        """``kernels``, and for a whole-file candidate ``resident``."""
        note = "by CUPTI in a process of its own: explains, never decides"
        found = [Timing("kernels", main.case, tuple(c.kernel_seconds for c in self.calls), note=note)]
        if main.kind == "end_to_end":
            found.append(Timing("resident", main.case, tuple(c.resident_seconds for c in self.calls), note=note))
        return found if self.calls else []

    def profile(self) -> dict[str, Any]:
        """By name: per kernel its seconds, share, launches, shape and occupancy; seconds and bytes of copies."""
        if not self.calls:
            return {}
        last = self.calls[-1]
        total = sum(k.end - k.start for k in last.kernels) or 1
        kernels: dict[str, dict[str, Any]] = {}
        for launch in last.kernels:
            known = kernels.setdefault(
                launch.name, {"seconds": 0.0, "share": 0.0, "launches": 0, **self._shape(launch)}
            )
            known["seconds"] += (launch.end - launch.start) * 1e-9
            known["share"] += (launch.end - launch.start) / total
            known["launches"] += 1
        found: dict[str, Any] = {"kernels": kernels, "kernel_seconds": self.kernel_seconds}
        if last.copies:
            found["copies"] = dict(last.copies)
            found["copied_bytes"] = dict(last.copied_bytes)
        hidden = length(last.hidden) * 1e-9
        if hidden:
            found["allocation_and_copy_calls_seconds"] = hidden
        return found

    def _shape(self, launch: KernelRecord) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "blocks": launch.blocks,
            "threads": launch.threads,
            "registers": launch.registers,
            "shared_bytes": launch.shared_bytes,
        }
        found = theoretical_occupancy(launch.threads, launch.registers, launch.shared_bytes, self.limits)
        if found is not None:
            shape["occupancy"] = found.share
            shape["occupancy_limit"] = found.limit
        return shape


def parse_call(text: str) -> CallTrace | None:
    """One call's lines; `None` if they are not whole. The text comes from an untrusted process."""
    kernels: list[KernelRecord] = []
    copies: dict[str, float] = {}
    copied: dict[str, int] = {}
    kinds: dict[int, int] = {}
    calls: list[tuple[Interval, int, str]] = []
    busy: list[Interval] = []
    wall: Interval | None = None
    try:
        for line in text.splitlines():
            word, *rest = line.split(" ")
            if word == "call":
                wall = Interval(int(rest[0]), int(rest[1]))
            elif word == "kernel":
                start, end, blocks, threads, registers, static, dynamic = map(int, rest[:7])
                name = " ".join(rest[7:])[:_NAME]
                kernels.append(KernelRecord(name, start, end, blocks, threads, registers, static + dynamic))
                busy.append(Interval(start, end))
            elif word == "copy":
                kind, size, start, end, correlation = map(int, rest)
                name = {_TO_DEVICE: "to_device", _TO_HOST: "to_host"}.get(kind, "on_device")
                kinds[correlation] = kind
                if name == "on_device":
                    busy.append(Interval(start, end))
                copies[name] = copies.get(name, 0.0) + (end - start) * 1e-9
                copied[name] = copied.get(name, 0) + size
            elif word == "memset":
                size, start, end = map(int, rest)
                busy.append(Interval(start, end))
                copies["memset"] = copies.get("memset", 0.0) + (end - start) * 1e-9
                copied["memset"] = copied.get("memset", 0) + size
            elif word == "api":
                calls.append((Interval(int(rest[0]), int(rest[1])), int(rest[2]), rest[3]))
    except (ValueError, IndexError):
        return None
    if wall is None:
        return None
    inside = [c for c in calls if c[0].end > wall.start and c[0].start < wall.end]
    hidden = [
        interval
        for interval, correlation, name in inside
        if any(part in name for part in _ALLOCATES)
        or (kinds.get(correlation) in (_TO_DEVICE, _TO_HOST) and not any(part in name for part in _STRIDED))
    ]
    calls_back = any(part in name for _, _, name in inside for part in _CALLS_BACK)
    return CallTrace(wall, tuple(kernels), copies, copied, tuple(hidden), tuple(busy), calls_back)


def make_trace(texts: Sequence[str], limits: Mapping[str, int]) -> Trace | None:
    """Of the texts of all calls; `None` if none can be read or no kernel is among them."""
    calls = [c for c in map(parse_call, texts) if c is not None and c.kernels]
    return Trace(tuple(calls[1:] or calls), limits) if calls else None


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Without overlaps, by start."""
    found: list[Interval] = []
    for one in sorted(intervals, key=lambda i: i.start):
        if found and one.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, one.end))
        elif one.end > one.start:
            found.append(one)
    return found


def length(intervals: Iterable[Interval]) -> int:
    """Of the union."""
    return sum(i.end - i.start for i in merged(intervals))


def without(intervals: Iterable[Interval], taken: Iterable[Interval]) -> list[Interval]:
    """The union of the first less that of the second."""
    found: list[Interval] = []
    cuts = merged(taken)
    for one in merged(intervals):
        start = one.start
        for cut in cuts:
            if cut.end <= start or cut.start >= one.end:
                continue
            if cut.start > start:
                found.append(Interval(start, cut.start))
            start = max(start, cut.end)
        if start < one.end:
            found.append(Interval(start, one.end))
    return found
