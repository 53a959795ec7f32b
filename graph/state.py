"""The state of one trajectory: plain values that survive JSON and msgpack, nothing else."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, TypedDict

import numpy as np

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.policies.base import Attempt

STATE_VERSION = 1
"""To be raised when the state's shape changes: checkpoints of another shape are not used, the store's steps are."""


class PastTurn(TypedDict):
    """A finished turn: what the policy may see of it, and the digest by which a repetition is known."""

    turn: int
    source: str
    source_key: str
    verdict: dict[str, Any]
    feedback: str


class State(TypedDict, total=False):
    """One trajectory.

    Attributes:
        turn: 0-based turn at work.
        source, source_key: Its candidate and the digest of it without layout and comments.
        verdict: What is known about the candidate so far, `Verdict.to_dict`.
        assessment: ``features``, ``hints`` and ``reward`` of the candidate.
        history: Finished turns.
        stop: Why no further turn begins; empty while one does.
        steps: How many stored steps led here. A checkpoint that counts more than the store holds (a power cut can
            do that) is not used.
        outcome: What ``finish`` found: ``reason``, ``first_choice``, ``best_turn``.
    """

    turn: int
    source: str | None
    source_key: str | None
    verdict: dict[str, Any] | None
    assessment: dict[str, Any]
    history: Annotated[list[PastTurn], operator.add]
    stop: str
    steps: Annotated[int, operator.add]
    outcome: dict[str, Any]


def initial_state() -> State:
    """Before the first turn."""
    return {
        "turn": 0,
        "source": None,
        "source_key": None,
        "verdict": None,
        "assessment": {},
        "history": [],
        "stop": "",
        "steps": 0,
    }


def attempts(state: State) -> tuple[Attempt, ...]:
    """The finished turns as a policy sees them."""
    return tuple(
        Attempt(past["turn"], past["source"], Verdict.from_dict(past["verdict"]), past["feedback"])
        for past in state["history"]
    )


def plain(value: Any) -> Any:
    """`value` with tuples as lists, enumerations as their values and numpy scalars as Python's."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def storable(text: str) -> str:
    """`text` without what no database takes: lone surrogates and NUL become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
