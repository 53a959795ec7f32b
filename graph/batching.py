"""A front before a policy that takes batches: requests of many trajectories that come together go out together."""

from __future__ import annotations

import asyncio
from typing import Protocol, runtime_checkable

from cudaperf_agent.policies.base import Policy, Proposal, ProposalRequest


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A policy that answers many requests in one call."""

    async def propose_batch(self, requests: list[ProposalRequest]) -> list[list[Proposal]]:
        """One list of proposals per request, in order."""
        ...


class BatchingPolicy:
    """Gathers concurrent ``propose`` calls into ``propose_batch`` calls.

    A batch goes out when it is full or when `seconds` have passed since its first request. If a batch fails, every
    request in it fails in the same way.

    Args:
        policy: Who answers.
        seconds: How long the first request of a batch waits for others.
        size: Most requests of one batch.
    """

    def __init__(self, policy: BatchPolicy, *, seconds: float, size: int) -> None:
        self._policy = policy
        self._seconds = seconds
        self._size = size
        self._waiting: list[tuple[ProposalRequest, asyncio.Future[list[Proposal]]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The policy's own name."""
        return self._policy.name

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """As `Policy.propose`."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Proposal]] = loop.create_future()
        self._waiting.append((request, answer))
        if len(self._waiting) >= self._size:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(self._seconds, self._send)
        return await answer

    async def aclose(self) -> None:
        """As `Policy.aclose`."""
        await self._policy.aclose()

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        batch = [(request, answer) for request, answer in batch if not answer.done()]
        if batch:
            task = asyncio.get_running_loop().create_task(self._answer(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _answer(self, batch: list[tuple[ProposalRequest, asyncio.Future[list[Proposal]]]]) -> None:
        requests = [request for request, _ in batch]
        (answered,) = await asyncio.gather(self._policy.propose_batch(requests), return_exceptions=True)
        error = answered if isinstance(answered, BaseException) else None
        answers = [] if isinstance(answered, BaseException) else answered
        if error is None and len(answers) != len(batch):
            error = RuntimeError(f"{self.name} answered {len(answers)} of {len(batch)} requests")
        for index, (_, answer) in enumerate(batch):
            if answer.done():
                continue
            if error:
                answer.set_exception(error)
            else:
                answer.set_result(answers[index])
