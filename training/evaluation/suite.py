"""A suite: the tasks of a benchmark, each with its group, its family and, where there is one, a hand-written kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cudaperf_agent.tasks.model import Task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item:
    """One task of a suite, not yet understood.

    Attributes:
        key: Unique within the suite, ``GROUP/NAME``.
        group: Groups are reported apart.
        family: Statistical cluster; the key itself where tasks are unrelated.
        text: Source text, by which a changed suite is noticed.
        load: Understands it without running it; raises `InputRefused` or `UsageError` where it cannot be a task.
        hand: A hand-written candidate, ``""`` if there is none; it is judged by the same rules.
        facts: What the suite says of the task, JSON-ready.
        given: The benchmark's own cases as C++ that calls ``wrapper(CALLED, arguments…)``; see `given`.
        called: The name that stands for the function there.
        describe: Adds facts that need the understood task (sizes of our hidden cases); called in a thread.
    """

    key: str
    group: str
    family: str
    text: str
    load: Callable[[], Task]
    hand: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    called: str = ""
    describe: Callable[[Task], dict[str, Any]] | None = None

    @property
    def digest(self) -> str:
        """Of what the suite holds for this task."""
        return hashlib.sha256("\0".join([self.key, self.text, self.hand, *self.given]).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks in a fixed order.

    Attributes:
        name: As asked for.
        items: The tasks.
        notes: Sentences that a reader of the report must know.
    """

    name: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()

    def in_turn(self) -> tuple[Item, ...]:
        """The tasks, of each group in turn: whatever part of them is done spans the groups."""
        return in_turn(self.items, lambda item: item.group)

    def limited(self, most: int | None) -> Suite:
        """The first `most` tasks, taken from the groups in turn; the choice does not depend on any result."""
        if most is None or most >= len(self.items):
            return self
        chosen = {item.key for item in self.in_turn()[:most]}
        kept = tuple(item for item in self.items if item.key in chosen)
        note = f"Limited to {most} of the suite's {len(self.items)} tasks, the first of each group in turn."
        return Suite(self.name, kept, (*self.notes, note))


def in_turn(items: Sequence[T], group_of: Callable[[T], str]) -> tuple[T, ...]:
    """Things of each group in turn, groups in the order of their first members."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(group_of(item), []).append(item)
    longest = max(map(len, groups.values()), default=0)
    return tuple(members[place] for place in range(longest) for members in groups.values() if place < len(members))
