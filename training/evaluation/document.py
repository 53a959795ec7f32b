"""What a report says, independent of its form: sections of sentences, tables and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite

from training.evaluation.intervals import Interval

# Escape sequences of terminals, and characters that control, reorder or hide: names and messages come from anywhere.
_HARMFUL = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a head; the first column is left-aligned text, the others are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report; `level` 2 or 3."""

    title: str
    level: int = 2
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    lead: tuple[str, ...] = ()
    sections: tuple[Section, ...] = field(default=())


def plain(text: str, width: int = 300) -> str:
    """Untrusted text on one line, without anything that steers what shows it."""
    line = " ".join(_HARMFUL.sub(" ", text[: 4 * width]).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def percent(value: float) -> str:
    """``87.5 %``."""
    return f"{100 * value:.1f} %"


def percent_interval(interval: Interval) -> str:
    """``87.5 % [80.1, 93.0]``; without an interval where there are too few units for one."""
    if not (isfinite(interval.low) and isfinite(interval.high)):
        return percent(interval.value)
    # Studentised intervals may pass the ends of the scale, which the quantity cannot.
    low, high = max(interval.low, 0.0), min(interval.high, 1.0)
    return f"{percent(interval.value)} [{100 * low:.1f}, {100 * high:.1f}]"


def times(value: float) -> str:
    """``12.5×``."""
    return f"{value:.3g}×"


def times_interval(interval: Interval) -> str:
    """``12.5× [10.1, 15.2]``."""
    if not (isfinite(interval.low) and isfinite(interval.high)):
        return times(interval.value)
    return f"{times(interval.value)} [{interval.low:.3g}, {interval.high:.3g}]"


def signed_percent_interval(interval: Interval) -> str:
    """``+2.5 [−1.0, 6.0]``, in points."""
    value = f"{100 * interval.value:+.1f}"
    if not (isfinite(interval.low) and isfinite(interval.high)):
        return value
    return f"{value} [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"


def text_document(document: Document) -> str:
    """For a terminal: without pictures."""
    return "\n".join(_text_lines(document)).rstrip() + "\n"


def _text_lines(document: Document) -> Iterator[str]:
    yield plain(document.title)
    yield from (plain(line) for line in document.lead)
    for section in document.sections:
        yield ""
        yield plain(section.title).upper() if section.level == 2 else plain(section.title)
        yield from (plain(line, 2000) for line in section.text)
        for table in section.tables:
            if table.title:
                yield plain(table.title)
            yield from _columns(table)


def _columns(table: Table) -> Iterator[str]:
    rows = [tuple(plain(cell) for cell in row) for row in (table.head, *table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.head))]
    for row in rows:
        first, *rest = row
        cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))]
        yield f"  {'  '.join(cells)}".rstrip()


def markdown_document(document: Document) -> str:
    """As Markdown: text is never markup."""
    return "\n".join(_markdown_lines(document)).rstrip() + "\n"


def _markdown_lines(document: Document) -> Iterator[str]:
    yield f"# {_escaped(document.title)}"
    for line in document.lead:
        yield from ("", _escaped(line, 2000))
    for section in document.sections:
        yield from ("", f"{'#' * section.level} {_escaped(section.title)}")
        for line in section.text:
            yield from ("", _escaped(line, 2000))
        for table in section.tables:
            yield from ("", _escaped(table.title), "") if table.title else ("",)
            yield f"| {' | '.join(_escaped(cell) for cell in table.head)} |"
            yield f"|{'|'.join(['---', *['---:'] * (len(table.head) - 1)])}|"
            yield from (f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in table.rows)


def _escaped(text: str, width: int = 300) -> str:
    return "".join("\\" + c if c in "\\`*_<>|#" else c for c in plain(text, width))
