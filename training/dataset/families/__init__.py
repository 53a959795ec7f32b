"""C program families: small parametrised templates, eight members each, deterministic in name and text."""

from __future__ import annotations

from collections.abc import Iterator

from training.dataset.families import algebra, dynamic, elementwise, filters, reductions, stencils
from training.dataset.families.model import MEMBERS, Family, Program

__all__ = ["FAMILIES", "MEMBERS", "Family", "Program", "all_programs"]

FAMILIES: tuple[Family, ...] = (
    *elementwise.FAMILIES,
    *stencils.FAMILIES,
    *reductions.FAMILIES,
    *algebra.FAMILIES,
    *dynamic.FAMILIES,
    *filters.FAMILIES,
)
"""Every family, in a fixed order."""


def all_programs() -> Iterator[Program]:
    """Every task, member by member: a prefix of it spans all families."""
    for member in range(MEMBERS):
        for family in FAMILIES:
            yield family.program(member)
