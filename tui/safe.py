"""Untrusted text made harmless for a terminal and for a page: what a model wrote never steers what shows it.

Control characters, escape sequences and direction overrides are taken out (a right-to-left override can make code read
differently from what it is), lines and texts are cut to what a screen can bear. Markup is not interpreted anywhere:
widgets take `rich.text.Text` or `Content`, never a string with markup.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC and other strings, which end at BEL, ST or nowhere
    r"|\x1b[ -/]*[0-~]",
    re.S,
)
_BIDI = {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)}


@dataclass(frozen=True, slots=True)
class ShownLimits:
    """How much of a text is shown.

    Attributes:
        line: Characters of one line.
        lines: Lines.
    """

    line: int = 400
    lines: int = 4000


LIMITS = ShownLimits()


def printable(text: str) -> str:
    """`text` without escape sequences, control characters (but newline) and direction overrides; tabs expanded."""
    text = _ESCAPE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(4)
    return "".join(c for c in text if c == "\n" or not _harmful(c))


def shown(text: str, limits: ShownLimits = LIMITS) -> str:
    """`printable`, cut to the limits with a note of what is missing."""
    # Cut before anything is walked character by character: a text of many megabytes must not stall the screen.
    budget = limits.line * limits.lines
    cut = len(text) - budget
    lines = printable(text[:budget]).split("\n")
    kept = [_cut_line(line, limits.line) for line in lines[: limits.lines]]
    if len(lines) > limits.lines:
        kept.append(f"… {len(lines) - limits.lines} more lines")
    if cut > 0:
        kept.append(f"… {cut} more characters")
    return "\n".join(kept)


def one_line(text: str, width: int = 200) -> str:
    """`printable` on a single line of at most `width` characters."""
    return _cut_line(" ".join(printable(text[: width * 20]).split()), width)


def _cut_line(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _harmful(character: str) -> bool:
    return character in _BIDI or unicodedata.category(character) in ("Cc", "Cs", "Co")
