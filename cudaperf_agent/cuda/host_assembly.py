"""Assembly in a candidate: PTX in code for the device is honest work, instructions and names for the host are not."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b")
_BRACKET = re.compile(r"[(){};]")
_ON_DEVICE = re.compile(r"__device__|__global__|\(\s*(?:__)?(?:device|global)(?:__)?\s*\)")
_ON_HOST_TOO = re.compile(r"__host__|\(\s*(?:__)?host(?:__)?\s*\)")
_TYPE = re.compile(
    r"\b(?:struct|class|union|enum|namespace)\b(?!.*\)\s*(?:const|noexcept|override|final|&|\s)*$)", re.S
)
# PTX has none of these.
_HOST_ONLY = re.compile(
    r"syscall|sysenter|\bint\s*\$|\.(?:byte|[248]byte|short|value|word|long|quad|symver|section|set)\b"
)


def host_assembly(source: str, code: str) -> Iterator[int]:
    """Where assembly for the host begins, labels that rename a declaration among it.

    Args:
        source: What the preprocessor for the host made.
        code: The same with comments and literals blanked, offsets kept.
    """
    if not _ASM.search(code):
        return
    for at, heads in _enclosed(code):
        on_device = [h for h in heads if _ON_DEVICE.search(h) and not _TYPE.search(h)]
        on_host_too = any(_ON_HOST_TOO.search(h) for h in on_device)
        if not on_device or (on_host_too and _HOST_ONLY.search(source[at : _end(code, at)])):
            yield at


def _end(code: str, at: int) -> int:
    end = code.find(";", at)
    return len(code) if end < 0 else end


def _enclosed(code: str) -> Iterator[tuple[int, list[str]]]:
    """Each word for assembly, with what stands before the braces around it, outermost first."""
    starts, heads, braces = [0], [""], [True]
    places = iter([m.start() for m in _ASM.finditer(code)])
    place = next(places, None)
    for match in _BRACKET.finditer(code):
        while place is not None and place < match.start():
            yield place, heads[1:]
            place = next(places, None)
        if place is None:
            return
        at, mark = match.start(), match.group()
        if mark in "({":
            heads.append(code[starts[-1] : at] if mark == "{" else "")
            starts.append(at + 1)
            braces.append(mark == "{")
        elif mark in ")}" and len(starts) > 1:
            starts.pop(), heads.pop(), braces.pop()
            # What initialises a member or an argument ends no declaration.
            if mark == "}" and braces[-1] and not re.match(r"\s*[,{()\[.>]", code[at + 1 : at + 80]):
                starts[-1] = at + 1
        elif mark == ";" and braces[-1]:
            starts[-1] = at + 1
    while place is not None:
        yield place, heads[1:]
        place = next(places, None)
