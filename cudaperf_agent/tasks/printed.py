"""What a program printed, taken apart: words with their place, and numbers by value."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(rb"\S+")
_INTEGER = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """One blank-separated word.

    Attributes:
        text: As printed.
        line: 0-based line, blank lines at the end not counted.
        offset: Byte offset in the text.
        number: Its value if it is a number; an integer is an `int`.
        exact: Whether it is written as an integer.
    """

    text: str
    line: int
    offset: int
    number: int | float | None
    exact: bool


def words(text: bytes) -> list[Word]:
    """The words of `text` in order."""
    found = []
    line = start = 0
    for match in _WORD.finditer(text):
        line += text.count(b"\n", start, match.start())
        start = match.start()
        found.append(_word(match.group().decode("utf-8", "replace"), line, match.start()))
    return found


def _word(text: str, line: int, offset: int) -> Word:
    if _INTEGER.fullmatch(text):
        return Word(text, line, offset, int(text) if len(text) < 4000 else None, True)
    if _FLOAT.fullmatch(text):
        return Word(text, line, offset, float(text), False)
    return Word(text, line, offset, None, False)
