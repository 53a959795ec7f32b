"""Assembly in a candidate: PTX in code for the device is honest work, instructions and names for the host are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Block:
    """Braces, with what stands before them.

    Attributes:
        head: Text between the end of the statement before and the opening brace.
        start: Where that begins.
        end: Behind the closing brace.
    """

    head: str
    start: int
    end: int

    @property
    def on_device(self) -> bool:
        """Whether it is the body of a function for the device, be it for the host as well."""
        return bool(_ON_DEVICE.search(self.head)) and not _TYPE.search(self.head)


def host_assembly(source: str, code: str) -> Iterator[int]:
    """Where assembly for the host begins, labels that rename a declaration among it.

    Args:
        source: What the preprocessor for the host made.
        code: The same with comments and literals blanked, offsets kept.
    """
    places = [match.start() for match in _ASM.finditer(code)]
    around = blocks(code) if places else []
    for at in places:
        heads = [b.head for b in around if b.start <= at < b.end and b.on_device]
        on_host_too = any(_ON_HOST_TOO.search(h) for h in heads)
        if not heads or (on_host_too and _HOST_ONLY.search(source[at : _end(code, at)])):
            yield at


def blocks(code: str) -> list[Block]:
    """All braces of a text without comments and literals, closed or not, in the order of their ends."""
    found: list[Block] = []
    starts: list[int] = [0]
    opened: list[tuple[int, int] | None] = [(0, 0)]  # of a parenthesis, `None`
    for match in _BRACKET.finditer(code):
        at, mark = match.start(), match.group()
        if mark in "({":
            opened.append((starts[-1], at) if mark == "{" else None)
            starts.append(at + 1)
        elif mark in ")}" and len(starts) > 1:
            begun = opened.pop()
            starts.pop()
            if begun is not None:
                found.append(Block(code[begun[0] : begun[1]], begun[0], at + 1))
            # What initialises a member or an argument ends no declaration.
            if mark == "}" and opened[-1] is not None and not re.match(r"\s*[,{()\[.>]", code[at + 1 : at + 80]):
                starts[-1] = at + 1
        elif mark == ";" and opened[-1] is not None:
            starts[-1] = at + 1
    return found + [Block(code[b[0] : b[1]], b[0], len(code)) for b in opened[:0:-1] if b is not None]


def _end(code: str, at: int) -> int:
    end = code.find(";", at)
    return len(code) if end < 0 else end
