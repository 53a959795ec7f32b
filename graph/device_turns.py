"""A front before a policy that generates on the GPU that candidates are timed on: never both at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from cudaperf_agent.policies.base import Policy, Proposal, ProposalRequest
from graph.batching import BatchPolicy

Turn = Callable[[], AbstractAsyncContextManager[None]]
"""Gives the device to what runs inside, and to nothing else meanwhile."""


@dataclass(slots=True)
class _Round:
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    members: int = 0


class DeviceTurns:
    """Proposals take the device in rounds: all that wait go together, so that a server still sees them together.

    What comes later waits for the next round, so that timing has its turn in between.

    Args:
        policy: Who answers; closed by whoever made it.
        turn: The device.
    """

    def __init__(self, policy: Policy, turn: Turn) -> None:
        self._policy = policy
        self._turn = turn
        self._next = _Round()
        self._openers: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The policy's own."""
        return self._policy.name

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """As `Policy.propose`, in a round."""
        async with self._in_a_round():
            return await self._policy.propose(request)

    async def aclose(self) -> None:
        """Nothing to release: the policy is the caller's."""

    @asynccontextmanager
    async def _in_a_round(self) -> AsyncIterator[None]:
        mine = self._next
        mine.members += 1
        if mine.members == 1:
            opener = asyncio.get_running_loop().create_task(self._open(mine))
            self._openers.add(opener)
            opener.add_done_callback(self._openers.discard)
        try:
            await mine.opened.wait()
            yield
        finally:
            mine.members -= 1
            if not mine.members:
                mine.left.set()

    async def _open(self, current: _Round) -> None:
        async with self._turn():
            self._next = _Round()
            if current.members:
                current.left.clear()
                current.opened.set()
                await current.left.wait()


class BatchDeviceTurns(DeviceTurns):
    """The same before a policy that takes batches."""

    def __init__(self, policy: BatchPolicy, turn: Turn) -> None:
        super().__init__(policy, turn)
        self._batches = policy

    async def propose_batch(self, requests: list[ProposalRequest]) -> list[list[Proposal]]:
        """As the policy does it, in a round."""
        async with self._in_a_round():
            return await self._batches.propose_batch(requests)


def with_device_turns(policy: Policy, turn: Turn) -> Policy:
    """The policy, in rounds."""
    return BatchDeviceTurns(policy, turn) if isinstance(policy, BatchPolicy) else DeviceTurns(policy, turn)
