"""Program mode's ``stdin`` clause: what a whole program reads, in order, as numbers separated by white space."""

from __future__ import annotations

from collections.abc import Sequence

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.clauses import Clause
from cudaperf_agent.tasks.macros import Macros
from cudaperf_agent.tasks.model import Origin, StdinItem, ValueRange
from cudaperf_agent.tasks.parameters import checked_names


def read_items(clause: Clause, macros: Macros, origin: Origin) -> tuple[StdinItem, ...]:
    """The items of a ``stdin`` clause; extents and ranges may use scalars read earlier.

    Raises:
        InputRefused: A name is used twice, or before it is read.
    """
    where = macros.unit.at(clause.line)
    items: list[StdinItem] = []
    scalars: set[str] = set()
    for item in clause.items:
        if item.name in {i.name for i in items}:
            raise InputRefused(f"`{item.name}` is read twice", where=where, hint="Give each item its own name.")
        extent = checked_names(macros.expand(item.dims[0]), item.dims[0], scalars, where) if item.dims else None
        assert item.range is not None
        low, high = (
            None if end is None else checked_names(macros.expand(end), end, scalars, where)
            for end in (item.range.low, item.range.high)
        )
        items.append(StdinItem(item.name, extent, ValueRange(low, high, origin=origin)))
        if extent is None:
            scalars.add(item.name)
    return tuple(items)


def missing_stdin(path: str, line: int, others: Sequence[str]) -> InputRefused:
    """The error for a program of which nobody says what it reads."""
    entry = f" To translate a function of the file instead: --entry {others[0]}." if others else ""
    return InputRefused(
        "the file is a whole program, and nothing says what it reads",
        where=f"{path}:{line}",
        hint="Write what it reads, e.g. /* cudaperf: stdin n in 0..1000, a[n] in -100..100 */, "
        f"or give example inputs: --stdin FILE.{entry}",
    )
