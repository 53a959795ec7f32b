"""Untrusted text made harmless for a terminal and for a page: what a model wrote never steers what shows it.

Control characters, escape sequences and direction overrides are taken out (a right-to-left override can make code read
differently from what it is), lines and texts are cut to what a screen can bear. Markup is not interpreted anywhere:
widgets take `rich.text.Text` or `Content`, never a string with markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC and other strings, which end at BEL, ST or nowhere
    r"|\x1b[ -/]*[0-~]",
    re.S,
)
# What is left of control characters, surrogates, private characters, and what reorders, hides or breaks lines unseen.
_HARMFUL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ue000-\uf8ff\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\U000f0000-\U0010ffff]"
)
_SPARE = 4
"""A line is cut to so many times its limit before it is cleaned, since cleaning takes characters out."""


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
    return _HARMFUL.sub("", text)


def shown(text: str, limits: ShownLimits = LIMITS) -> str:
    """`printable`, cut to the limits with a note of what is missing."""
    # Cut before anything is cleaned: a text of many megabytes must not stall the screen.
    budget = limits.line * limits.lines
    whole = text[:budget].split("\n", limits.lines)
    rest = whole.pop() if len(whole) > limits.lines else ""
    kept = [_cut_line(line, limits.line) for line in printable("\n".join(_shortened(whole, limits.line))).split("\n")]
    if rest or len(kept) > limits.lines:
        kept = [*kept[: limits.lines], "… more lines"]
    if len(text) > budget:
        kept.append(f"… {len(text) - budget} more characters")
    return "\n".join(kept)


def _shortened(lines: Iterable[str], width: int) -> Iterator[str]:
    return (line[: width * _SPARE] for line in lines)


def one_line(text: str, width: int = 200) -> str:
    """`printable` on a single line of at most `width` characters."""
    return _cut_line(" ".join(printable(text[: width * _SPARE]).split()), width)


def _cut_line(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
