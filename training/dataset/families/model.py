"""What a family is: a template of C text with parameters, of which eight members differ in speed and in style."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import TypeVar

MEMBERS = 8
"""Tasks of one family."""

Fill = Mapping[str, str | int | float]
Picked = TypeVar("Picked")


@dataclass(frozen=True, slots=True)
class Program:
    """One task of a family.

    Attributes:
        family: Name of the family, the statistical unit of every interval.
        member: 0 to `MEMBERS` − 1.
        source: The C text.
        entry: Name of its entry function.
        sizes: Integer parameters of the timed size, by their name in `source`.
    """

    family: str
    member: int
    source: str
    entry: str
    sizes: dict[str, int]

    @property
    def name(self) -> str:
        """``family/member``: stable, the key in every file."""
        return f"{self.family}/{self.member}"


@dataclass(frozen=True, slots=True)
class Family:
    """A template and how its members differ.

    Attributes:
        name: Unique.
        template: C with ``$NAME`` for what differs (`string.Template`).
        fill: Values of member k.
        sizes: Integer parameters of the timed size of member k, by their name in the template.
        area: Coarse kind: ``map``, ``stencil``, ``reduction``, …
    """

    name: str
    template: str
    fill: Callable[[int], Fill]
    sizes: Callable[[int], Mapping[str, int]]
    area: str

    def program(self, member: int) -> Program:
        """Member `member`, filled and written in a style of its own."""
        from training.dataset.families.style import restyle

        text = Template(self.template).substitute({k: str(v) for k, v in self.fill(member).items()})
        source, renamed = restyle(text.strip() + "\n", seed=_number(self.name), member=member)
        sizes = {renamed.get(name, name): value for name, value in self.sizes(member).items()}
        return Program(self.name, member, source, self.name, sizes)


def pick(values: Sequence[Picked], member: int) -> Picked:
    """The member's value of a list that is gone through round and round."""
    return values[member % len(values)]


def _number(name: str) -> int:
    return sum((i + 1) * ord(c) for i, c in enumerate(name))
