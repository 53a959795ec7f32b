"""The event stream of a run: what the CLI, the TUI and the log displays show."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class EventKind(StrEnum):
    """What happened. The keys of `Event.data` are named beside each."""

    RUN_STARTED = "run_started"  # task, policy, backend, turns, trajectories
    TURN_STARTED = "turn_started"  # messages: [{role, content}]
    NODE_STARTED = "node_started"
    NODE_FINISHED = "node_finished"  # seconds
    TOKEN = "token"  # text
    PROPOSAL = "proposal"  # source, text, strategy, model, declined
    VERDICT = "verdict"  # verdict: Verdict.to_dict()
    REWARD = "reward"  # total, verifiable, structural, features, hints
    FEEDBACK = "feedback"  # text
    TRAJECTORY_FINISHED = "trajectory_finished"  # reason, best_turn
    RUN_FINISHED = "run_finished"  # status, best: {trajectory, turn}, verdict
    NOTICE = "notice"  # message, level


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `data` is JSON-ready.

    Attributes:
        kind: What happened.
        run: Run id.
        at: Unix time in seconds.
        trajectory, turn: 0-based; `None` for events of the whole run.
        node: Graph node, if it came from one.
        data: See `EventKind`.
    """

    kind: EventKind
    run: str
    at: float
    trajectory: int | None = None
    turn: int | None = None
    node: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)
