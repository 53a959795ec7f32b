"""What the store takes and gives: plain, immutable records without any database in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.tasks.model import Task


class RunStatus(StrEnum):
    """How a run (or a trajectory) stands. All but `RUNNING`, `INTERRUPTED` and `ERROR` are final."""

    RUNNING = "running"
    CORRECT = "correct"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    ERROR = "error"

    @property
    def final(self) -> bool:
        """Whether nothing is left to resume."""
        return self in (RunStatus.CORRECT, RunStatus.FAILED)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a listing. Times are Unix seconds.

    Attributes:
        id: Sorts by time of creation.
        origin: Who asked for it: ``translate``, ``train``, ``evaluate``, …
        created, finished: When.
        status: How it stands.
        reason: One sentence on how it ended.
        task_name, task_path, task_digest: Of the task.
        policy, backend: Names.
        trajectories, turns: How many of each were asked for.
        best_trajectory, best_turn: The chosen attempt, 0-based.
        best_seconds: Its median time on the hidden cases' run, where timed.
        best_speedup, best_baseline: Where timed.
    """

    id: str
    origin: str
    created: float
    status: RunStatus
    task_name: str
    task_path: str
    task_digest: str
    policy: str
    backend: str
    trajectories: int
    turns: int
    reason: str = ""
    finished: float | None = None
    best_trajectory: int | None = None
    best_turn: int | None = None
    best_seconds: float | None = None
    best_speedup: float | None = None
    best_baseline: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run with everything needed to resume it.

    Attributes:
        summary: As listed.
        task: The task.
        config: The configuration it was started with, JSON-ready.
    """

    summary: RunSummary
    task: Task
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, for `Store.end_run`; see `RunSummary`."""

    status: RunStatus
    reason: str
    finished: float
    best_trajectory: int | None = None
    best_turn: int | None = None
    best_seconds: float | None = None
    best_speedup: float | None = None
    best_baseline: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One trajectory of a run.

    Attributes:
        run: Run id.
        number: 0-based.
        seed: Its random seed.
        status: How it stands.
        started, finished: Unix seconds.
        reason: Why it stopped: ``turns``, ``repeated``, ``declined: …``, ``correct``, ``budget``; the error's message.
        error: The error's `CudaPerfError.as_dict`, or kind and message of another exception.
        first_choice: Turn of the attempt that the visible cases and the search's timing chose.
        best_turn: Turn of the attempt that stands after the hidden cases; differs from `first_choice` if that failed.
    """

    run: str
    number: int
    seed: int
    status: RunStatus
    started: float
    finished: float | None = None
    reason: str = ""
    error: dict[str, Any] | None = None
    first_choice: int | None = None
    best_turn: int | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids and log-probabilities of one completion, where the backend gives them."""

    prompt: tuple[int, ...] | None = None
    completion: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A finished node of one turn: its result is never computed again.

    Attributes:
        run, trajectory, turn, node: The key.
        started, finished: Unix seconds.
        payload: What the node found, JSON-ready; the keys by node are `projection.COLUMNS`, and ``verdict``.
        tokens: Of ``generate`` only; written, and read with the attempt.
    """

    run: str
    trajectory: int
    turn: int
    node: str
    started: float
    finished: float
    payload: dict[str, Any]
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One turn, as far as it got.

    Attributes:
        run, trajectory, turn: The key.
        messages: The prompt, ``[{"role", "content"}]``.
        text: The whole answer.
        source: The candidate; `None` if there was no code in the answer or the policy declined.
        source_key: Digest of the normalised source; equal for sources that differ in layout and comments only.
        strategy, model: Who made it.
        declined: Why the policy declined, if it did.
        finish_reason, usage: As the policy told.
        status: The verdict's; ``declined`` or ``repeated`` for a turn that ended so; empty while there is none.
        verdict: As far as known: after compiling, testing or measuring.
        features, hints: φ(y) and what it means.
        reward: Components and ``total``; `None` where the attempt leaves its group.
        feedback: What the next turn reads.
        hidden_verdict: On the hidden cases, of chosen attempts only.
        tokens: Where the backend gave them.
    """

    run: str
    trajectory: int
    turn: int
    messages: tuple[dict[str, str], ...] = ()
    text: str = ""
    source: str | None = None
    source_key: str | None = None
    strategy: str = ""
    model: str = ""
    declined: str | None = None
    finish_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    status: str = ""
    verdict: Verdict | None = None
    features: dict[str, Any] | None = None
    hints: tuple[dict[str, Any], ...] = ()
    reward: dict[str, Any] | None = None
    feedback: str = ""
    hidden_verdict: Verdict | None = None
    tokens: Tokens | None = None
