"""Reads what ``ptxas -v`` prints: registers, shared memory and spills per kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FUNCTION = re.compile(r"(?:Compiling entry function|Function properties for) '?([\w$.]+)'?(?: for '(\w+)')?")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel needs of a multiprocessor.

    Attributes:
        name: Mangled name.
        registers: Per thread.
        shared: Static shared memory per block, bytes.
        stack, spill_stores, spill_loads: Bytes per thread.
    """

    name: str
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0


def parse_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Resources of every kernel in the output of ``ptxas -v``, in order; lines of other kinds are passed over."""
    found: dict[str, dict[str, int]] = {}
    entry = subject = ""
    for line in text.splitlines():
        named = _FUNCTION.search(line)
        if named:
            subject = named.group(1)
            if "Compiling entry" in line:
                entry = subject
                found.setdefault(entry, {})
        spills = _SPILLS.search(line)
        if spills and subject in found:
            stack, stores, loads = (int(g) for g in spills.groups())
            found[subject].update(stack=stack, spill_stores=stores, spill_loads=loads)
        registers = _REGISTERS.search(line)
        if registers and entry:
            found[entry]["registers"] = int(registers.group(1))
            shared = _SHARED.search(line)
            found[entry]["shared"] = int(shared.group(1)) if shared else 0
    return tuple(KernelResources(name, **values) for name, values in found.items())
