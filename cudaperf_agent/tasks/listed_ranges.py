"""Ranges of integers that were inferred and are listed for the user: how they are worded, and read again.

What a later step narrows for its tests is no longer in a parameter's range; the list keeps what a call must hold to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cudaperf_agent.tasks.model import ValueRange

_WORDINGS = (
    re.compile(r"(?P<name>\w+) is (?P<low>\d+) or more, as sizes are made of it"),
    re.compile(r"(?P<name>\w+) lies in (?P<low>.+?)\.\.(?P<high>.+), as it indexes \w+"),
)


def listed_size(name: str, low: str) -> str:
    """The sentence about an integer that sizes are made of."""
    return f"{name} is {low} or more, as sizes are made of it"


def listed_index(name: str, high: str, buffer: str) -> str:
    """The sentence about an integer that picks an element of a buffer."""
    return f"{name} lies in 0..{high}, as it indexes {buffer}"


def listed_range(name: str, assumptions: Iterable[str]) -> ValueRange | None:
    """The range that the first such sentence about an integer gives."""
    for sentence in assumptions:
        for wording in _WORDINGS:
            said = wording.fullmatch(sentence)
            if said and said["name"] == name:
                return ValueRange(said["low"], said.groupdict().get("high"))
    return None
