"""What the nodes are given: the parts of the outer world, by the graph's runtime context."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cudaperf_agent.cuda.base import CandidateVerifier
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.policies.base import Attempt, Message, Policy
from cudaperf_agent.store.records import Step
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from graph.config import GraphConfig
from graph.writer import StoreWriter


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a candidate looks like and is worth.

    Attributes:
        features: φ(y) by name, in the features' own units; `None` where there are none.
        hints: What the values mean: ``{"message", "line", …}`` each.
        reward: ``total``, ``verifiable``, ``structural`` and further components; `None` if it leaves its group.
    """

    features: dict[str, Any] | None = None
    hints: tuple[dict[str, Any], ...] = ()
    reward: dict[str, Any] | None = None


class ParsedAnswer(Protocol):
    """What an answer holds: the candidate, or the reason why there is none."""

    @property
    def source(self) -> str | None:
        """The candidate."""
        ...

    @property
    def reason(self) -> str:
        """Why there is none, one sentence."""
        ...


class ParseAnswer(Protocol):
    """Finds the candidate in an answer."""

    def __call__(self, text: str, *, name: str | None = None, finish_reason: str = "stop") -> ParsedAnswer:
        """See `policies.parse_answer.parse_answer`."""
        ...


class BuildMessages(Protocol):
    """Makes the prompt of the next turn."""

    def __call__(self, task: Task, history: Sequence[Attempt] = (), /) -> tuple[Message, ...]:
        """See `policies.prompts.build_messages`."""
        ...


class Assess(Protocol):
    """Computes features, hints and reward; called in a thread of its own, since it may parse."""

    def __call__(self, task: Task, source: str, verdict: Verdict, /) -> Assessment:
        """`source` is empty where there was no code."""
        ...


class WriteFeedback(Protocol):
    """Puts verdict and assessment into the words that the next turn reads."""

    def __call__(self, verdict: Verdict, assessment: Assessment, /) -> str:
        """See `policies.feedback.build_feedback`."""
        ...


@dataclass(frozen=True, slots=True)
class Deps:
    """What a run needs from outside; the caller owns and closes them.

    Attributes:
        policy: Who proposes. If it has ``propose_batch(requests) -> list[list[Proposal]]``, it sees batches.
        verifier: Who judges.
        store: Who remembers.
        build_messages, parse_answer, assess, write_feedback: Prompts, answers, worth and words.
        checkpoints: File of the checkpoints; `None` is ``checkpoints.sqlite`` in the data folder.
        clock: Unix time in seconds.
    """

    policy: Policy
    verifier: CandidateVerifier
    store: Store
    build_messages: BuildMessages
    parse_answer: ParseAnswer
    assess: Assess
    write_feedback: WriteFeedback
    checkpoints: Path | None = None
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Context:
    """The runtime context of one trajectory.

    Attributes:
        deps, config, task, run: Of the whole run.
        trajectory: 0-based number.
        seed: Its seed.
        deadline: Unix time after which no new turn begins.
        writer: Saves steps in order, off the event loop.
        finished: Steps that an earlier process had finished, by turn and node: they are not done again.
    """

    deps: Deps
    config: GraphConfig
    task: Task
    run: str
    trajectory: int
    seed: int
    writer: StoreWriter
    deadline: float | None = None
    finished: dict[tuple[int, str], Step] = field(default_factory=dict)
