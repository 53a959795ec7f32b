"""The checker's report as the runtime writes it (JSON) → findings with lines of the candidate."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from cudaperf_agent.cuda.verdict import Report

Order = Literal["forward", "reverse", "random"]

_ADDR2LINE_SECONDS = 20
_MARK = re.compile(r"^cudaperf-emulator-report: (\{.*\})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EmulatorReport:
    """What one call (or one program) showed.

    Attributes:
        reports: Findings that make the candidate wrong, whatever it returned.
        notes: Findings that do not: ``leak`` (device memory that the call did not free), ``race-same-value``
            (unordered writes of one value), ``race-with-atomic``
            (the plain read that begins a compare-and-swap loop), ``uninit-copy`` of what looks like padding.
        unsupported: Why the emulator could not tell; then nothing here is a pass.
        stats: ``launches``, ``blocks``, ``threads``, ``accesses``, ``writes`` (of global memory, but for atomics),
            ``span`` (accesses of the busiest thread, summed over launches), and ``widest``: threads of the
            widest launch.
        kernels: Threads of the widest launch of each launch statement that ran, by ``kernel@line``.
    """

    reports: tuple[Report, ...] = ()
    notes: tuple[Report, ...] = ()
    unsupported: str | None = None
    stats: dict[str, int] = field(default_factory=dict)
    kernels: dict[str, int] = field(default_factory=dict)


def environment(order: Order = "forward", seed: int = 0, suppress: str | None = None) -> dict[str, str]:
    """Environment variables that fix in which order threads and blocks run.

    Args:
        order: ``forward``, ``reverse``, or ``random`` (of blocks, and of threads after every barrier).
        seed: Of the random order; the same seed gives the same run.
        suppress: A ``kernel@line`` (see `EmulatorReport.kernels`) whose launches are left out; ``*`` leaves out all
            of them but still counts them and their threads.
    """
    variables = {"CUDAPERF_EMULATOR_ORDER": order, "CUDAPERF_EMULATOR_SEED": str(seed)}
    return variables if suppress is None else {**variables, "CUDAPERF_EMULATOR_SUPPRESS": suppress}


def parse_report(text: str) -> EmulatorReport:
    """Read a report: `Outcome.report`, the file of a program, or standard error of a process that ended early.

    An empty text is an empty report. One that is cut or not ours becomes `unsupported`: it is no pass.
    """
    marked = _MARK.findall(text)
    body = marked[-1] if marked else text.strip()
    if not body or not body.startswith("{"):
        return EmulatorReport()
    try:
        data = json.loads(body)
        findings = [_Finding.read(f) for f in data["findings"]]
        stats = {str(k): int(v) for k, v in data["stats"].items()}
        kernels = {str(k): int(v) for k, v in data["kernels"].items()}
        library, source = str(data["library"]), str(data["source"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return EmulatorReport(unsupported=f"the emulator's report cannot be read: {error!r}")
    offsets = sorted({f.pc for f in findings if f.pc} | {f.other_pc for f in findings if f.other_pc})
    lines = _lines(library, _stamp(library), source, tuple(offsets)) if offsets else {}
    made = [(f.severity, f.report(lines)) for f in findings]
    unsupported = next((r for severity, r in made if severity == "unsupported"), None)
    return EmulatorReport(
        reports=tuple(r for severity, r in made if severity == "error"),
        notes=tuple(r for severity, r in made if severity == "note"),
        unsupported=_reason(unsupported) if unsupported else None,
        stats=stats,
        kernels=kernels,
    )


def _reason(report: Report) -> str:
    return f"line {report.line}: {report.message}" if report.line else report.message


@dataclass(frozen=True, slots=True)
class _Finding:
    kind: str
    severity: str
    message: str
    count: int
    pc: int
    line: int
    other_pc: int
    other_line: int

    @classmethod
    def read(cls, data: dict[str, Any]) -> _Finding:
        numbers = {name: int(data[name]) for name in ("count", "pc", "line", "other_pc", "other_line")}
        return cls(kind=str(data["kind"]), severity=str(data["severity"]), message=str(data["message"]), **numbers)

    def report(self, lines: dict[int, int]) -> Report:
        line = self.line or lines.get(self.pc)
        other = self.other_line or lines.get(self.other_pc)
        message = (
            f"{self.message} (the other one: line {other})" if other and self.kind.startswith("race") else self.message
        )
        return Report(kind=self.kind, message=message, line=line, count=self.count)


def _stamp(library: str) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        info = Path(library).stat()
        return info.st_mtime_ns, info.st_size
    return 0, 0


@lru_cache(maxsize=256)
def _lines(library: str, stamp: tuple[int, int], source: str, offsets: tuple[int, ...]) -> dict[int, int]:
    """Lines of `source` for return addresses in a library: of the innermost inlined frame that lies in that file."""
    del stamp  # part of the cache's key: the file may be built anew
    path = Path(library)
    if not path.is_file():
        return {}
    # A return address is behind its call: one byte less is inside it.
    command = ["addr2line", "-a", "-i", "-e", str(path), *(hex(o - 1) for o in offsets)]
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ADDR2LINE_SECONDS, check=False)
        return _read_addr2line(done.stdout, source)
    return {}


def _read_addr2line(text: str, source: str) -> dict[int, int]:
    lines: dict[int, int] = {}
    offset = 0
    wanted = Path(source).name
    for row in text.splitlines():
        if row.startswith("0x"):
            offset = int(row, 16) + 1
            continue
        file, _, number = row.split(" (discriminator")[0].rpartition(":")
        if offset not in lines and number.isdigit() and int(number) and Path(file).name == wanted:
            lines[offset] = int(number)
    return lines
