"""The policy interface: messages in, n completions out, asynchronous."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.tasks.model import Task


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """An earlier turn of the same trajectory, as a policy may see it."""

    turn: int
    source: str
    verdict: Verdict
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What a policy is asked.

    Attributes:
        messages: The prompt.
        task: The task itself; only `variants` and `scripted` look at it.
        history: Earlier attempts of this trajectory, oldest first.
        n: Completions wanted.
        run: Run id.
        trajectory: 0-based index within the run.
        turn: 0-based turn.
        seed: For reproducible sampling.
        on_token: Called with pieces of text as they arrive, if the policy streams.
    """

    messages: tuple[Message, ...]
    task: Task
    history: tuple[Attempt, ...] = ()
    n: int = 1
    run: str = ""
    trajectory: int = 0
    turn: int = 0
    seed: int | None = None
    on_token: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One completion.

    Attributes:
        text: The whole answer.
        source: The candidate, if the policy knows it without parsing (`variants`); else parse `text`.
        strategy: Name of the generator's strategy, if any.
        declined: Why the policy has nothing more to offer; then `text` is empty.
        finish_reason: ``stop``, ``length``, ``declined``, …
        model: Model or generator name.
        prompt_token_ids, token_ids, logprobs: As generated, if the backend gives them.
        usage: Token counts, if known.
    """

    text: str
    source: str | None = None
    strategy: str = ""
    declined: str | None = None
    finish_reason: str = "stop"
    model: str = ""
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    usage: dict[str, int] = field(default_factory=dict)


@runtime_checkable
class Policy(Protocol):
    """Proposes candidates. Failing to reach its backend raises `BackendUnavailable`."""

    @property
    def name(self) -> str:
        """Short name for reports and the store."""
        ...

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """`request.n` proposals, or one that declines."""
        ...

    async def aclose(self) -> None:
        """Release connections, engines and processes."""
        ...
