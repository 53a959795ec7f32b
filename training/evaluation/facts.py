"""What an evaluation found, as plain facts: a record per trajectory and turn, JSON-ready, without dates or run ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from training.evaluation.metrics import Trajectory

FORMAT = 1
"""Of the stored JSON; raised when a reader of the old form would misread the new one."""


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """One turn, judged by the visible tests and the search's timing.

    Attributes:
        status: The verdict's, or ``declined`` or ``repeated``.
        seconds: Median of the search's timing, where timed.
        speedups: S by baseline, by the search's timing.
        strategy: Of the generator, where the policy tells.
    """

    status: str
    seconds: float | None = None
    speedups: dict[str, float] = field(default_factory=dict)
    strategy: str = ""

    @property
    def correct(self) -> bool:
        """Whether it passed the visible tests."""
        return self.status == "correct"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one trajectory ended.

    Attributes:
        seed: Of the evaluation.
        number: 0-based, within the seed.
        correct: The kernel that visible tests and search timing chose passed the hidden tests and the timing after.
        reason: Why not: a verdict's status, ``declined``, ``error``, or ``hidden STATUS``; empty if correct.
        detail: One sentence about the reason.
        end: Why the trajectory stopped.
        seconds: Median time of the fresh timing, where timed.
        cold: Seconds of the first call in its process, where timed.
        speedups: S by baseline, by the fresh timing.
        cases: Hidden cases it ran.
        turns: All turns that were judged.
        given: Whether the trajectory's kernel passes the benchmark's own cases; `None` where there are none.
    """

    seed: int
    number: int
    correct: bool
    reason: str = ""
    detail: str = ""
    end: str = ""
    seconds: float | None = None
    cold: float | None = None
    speedups: dict[str, float] = field(default_factory=dict)
    cases: int = 0
    turns: tuple[TurnFacts, ...] = ()
    given: bool | None = None

    def against(self, baseline: str) -> Trajectory:
        """As the estimators take it."""
        return Trajectory(self.correct, self.speedups.get(baseline) if self.correct else None)


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One task of a suite.

    Attributes:
        key: Unique within the suite, ``GROUP/NAME``.
        group: Groups are reported apart.
        family: Tasks of one family are alike: intervals resample families. The key where there are none.
        digest: Of the task, so that comparisons know that it is the same.
        refused: Why it is no task for this tool; empty if it is one.
        outcomes: By seed and number; empty while the task is not finished.
        hand: The hand-written kernel under the same rules, if there is one.
        facts: What the suite says of it (sizes of a benchmark's own cases and of ours).
        unreached: Whether the timing that came after the search ended before this task: no speed is told of it.
    """

    key: str
    group: str
    family: str
    digest: str = ""
    refused: str = ""
    outcomes: tuple[Outcome, ...] = ()
    hand: Outcome | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    unreached: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A policy on a suite.

    Attributes:
        name: Of the evaluation.
        suite: Name of the suite.
        policy: Name of the policy.
        backend: ``gpu`` or ``emulator``.
        device: What candidates ran on.
        versions: Of the tools.
        n: Trajectories per task and seed.
        turns: Most turns of a trajectory.
        seeds: How many.
        tasks: In the order of the suite; those not finished have no outcomes.
        notes: Sentences that a reader must know.
    """

    name: str
    suite: str
    policy: str
    backend: str
    n: int
    turns: int
    seeds: int
    tasks: tuple[TaskFacts, ...]
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """In the order of the suite."""
        return tuple(dict.fromkeys(task.group for task in self.tasks))

    def finished(self, group: str | None = None) -> tuple[TaskFacts, ...]:
        """Tasks whose trajectories have all ended, of one group or of all."""
        return tuple(t for t in self.tasks if t.outcomes and group in (None, t.group))

    def timed(self) -> bool:
        """Whether any correct kernel has a time."""
        return any(o.speedups for o in self.outcomes())

    def outcomes(self) -> Iterator[Outcome]:
        """Of every finished task."""
        for task in self.tasks:
            yield from task.outcomes

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The inverse of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: It is no such record.
        """
        plain = dict(data)
        if plain.pop("format") != FORMAT:
            raise ValueError("it is of another version")
        tasks = tuple(_task(task) for task in plain.pop("tasks"))
        return cls(**{**plain, "tasks": tasks, "notes": tuple(plain["notes"])})


def _task(data: Mapping[str, Any]) -> TaskFacts:
    hand = _outcome(data["hand"]) if data["hand"] else None
    return TaskFacts(**{**data, "hand": hand, "outcomes": tuple(_outcome(o) for o in data["outcomes"])})


def _outcome(data: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**data, "turns": tuple(TurnFacts(**turn) for turn in data["turns"])})
