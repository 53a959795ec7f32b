"""What nvcc, cudafe++, ptxas, nvlink, g++ and ld print, as diagnostics with lines of the candidate."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cudaperf_agent.cuda.verdict import Diagnostic

_EDG = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?P<severity>(?:catastrophic )?error|warning|remark)"
    r"(?: #(?P<number>[\w-]+))?: (?P<text>.*)$"
)
_GNU = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>fatal error|error|warning): "
    r"(?P<text>.*)$"
)
_PTX = re.compile(r"^ptxas (?P<file>\S+), line \d+; (?P<severity>error|warning|fatal)\s*: (?P<text>.*)$")
_TOOL = re.compile(r"^(?P<tool>ptxas|nvcc|nvlink|cicc)\s*(?P<severity>error|warning|fatal)\s*:\s*(?P<text>.*)$")
_LINK = re.compile(r"(?P<text>undefined reference to .*|multiple definition of [^;\n]*)")
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_MANGLED = re.compile(r"_Z(?:N\w*?)?(\d+)(\w+)")
_KEPT = 50
IN_WRAPPER = "in the generated wrapper, from how the candidate declares its entry"


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What ptxas says of one kernel.

    Attributes:
        name: Mangled name.
        registers: Per thread.
        shared: Static shared memory per block, bytes.
        stack: Local memory frame per thread, bytes.
        spill_stores, spill_loads: Bytes per thread.
    """

    name: str
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0

    @property
    def readable(self) -> str:
        """The name without mangling, as far as a pattern can tell."""
        match = _MANGLED.match(self.name)
        return match.group(2)[: int(match.group(1))] if match else self.name


def parse_diagnostics(text: str, *, file: str, lines: int) -> tuple[Diagnostic, ...]:
    """Messages in order, errors first; equal ones once.

    Args:
        text: Standard error (and output) of the compiler.
        file: Name of the compiled file as given to the compiler.
        lines: Lines of the candidate; what lies behind them is the generated wrapper and has no line.
    """
    found: dict[Diagnostic, None] = {}
    for raw in text.splitlines():
        diagnostic = _parsed(raw.rstrip(), file, lines)
        if diagnostic is not None:
            found.setdefault(diagnostic)
    ordered = sorted(found, key=lambda d: 0 if d.severity == "error" else 1)
    return tuple(ordered[:_KEPT])


def parse_resources(text: str) -> tuple[KernelResources, ...]:
    """What ``ptxas -v`` printed of each kernel, in order."""
    found: list[KernelResources] = []
    name, spill = "", (0, 0, 0)
    for raw in text.splitlines():
        if entry := _ENTRY.search(raw):
            name, spill = entry.group("name"), (0, 0, 0)
        elif frame := _SPILL.search(raw):
            spill = (int(frame.group(1)), int(frame.group(2)), int(frame.group(3)))
        elif (used := _USED.search(raw)) and name:
            shared = _SHARED.search(raw)
            found.append(
                KernelResources(name, int(used.group("registers")), int(shared.group(1)) if shared else 0, *spill)
            )
            name = ""
    return tuple(found)


def _parsed(raw: str, file: str, lines: int) -> Diagnostic | None:
    for pattern in (_EDG, _GNU):
        if match := pattern.match(raw):
            severity = "error" if "error" in match.group("severity") else "warning"
            number, text = int(match.group("line")), match.group("text")
            column = match.groupdict().get("column")
            return _placed(severity, text, match.group("file"), number, int(column) if column else None, file, lines)
    if match := _PTX.match(raw):
        return Diagnostic(
            "error" if match.group("severity") != "warning" else "warning", f"ptxas: {match.group('text')}"
        )
    if match := _TOOL.match(raw):
        severity = "warning" if match.group("severity") == "warning" else "error"
        return Diagnostic(severity, f"{match.group('tool')}: {match.group('text')}")
    if match := _LINK.search(raw):
        return Diagnostic("error", match.group("text").strip())
    return None


def _placed(severity: str, text: str, where: str, line: int, column: int | None, file: str, lines: int) -> Diagnostic:
    if where.rsplit("/", 1)[-1] != file.rsplit("/", 1)[-1]:
        return Diagnostic(severity, f"{text} (in {where}, line {line})")
    if line > lines:
        return Diagnostic(severity, f"{text} ({IN_WRAPPER})")
    return Diagnostic(severity, text, line, column)
