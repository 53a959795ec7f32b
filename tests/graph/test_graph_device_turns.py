"""Generating and timing never share the device; proposals that wait go together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from graph_world import ScriptedPolicy, saxpy_task

from cudaperf_agent.policies.base import Proposal, ProposalRequest
from graph.batching import BatchPolicy
from graph.device_turns import with_device_turns


class Device:
    """One lock, and who was seen on it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.timing = False
        self.rounds = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self.lock:
            self.rounds += 1
            yield

    async def time(self) -> None:
        async with self.lock:
            self.timing = True
            for _ in range(5):
                await asyncio.sleep(0)
            self.timing = False


class Watching(ScriptedPolicy):
    """Notes how many proposals are at work, and that none is while something is timed."""

    device: Device
    now = most = 0

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        assert not self.device.timing
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await asyncio.sleep(0)
            assert not self.device.timing
        self.now -= 1
        return [Proposal("x")]


class Batches:
    """A policy that takes batches, and notes how large they are."""

    name = "batches"

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        return (await self.propose_batch([request]))[0]

    async def propose_batch(self, requests: list[ProposalRequest]) -> list[list[Proposal]]:
        self.sizes.append(len(requests))
        return [[Proposal("x")] for _ in requests]

    async def aclose(self) -> None:
        pass


def request() -> ProposalRequest:
    return ProposalRequest((), saxpy_task())


async def test_proposals_go_in_rounds_between_timings() -> None:
    device = Device()
    policy = Watching(["x"])
    policy.device = device
    front = with_device_turns(policy, device.turn)
    assert not isinstance(front, BatchPolicy)

    async def trajectory() -> None:
        for _ in range(4):
            await front.propose(request())
            await device.time()

    await asyncio.wait_for(asyncio.gather(*(trajectory() for _ in range(6))), 20)
    assert policy.most > 1
    assert device.rounds < 24
    assert not device.lock.locked()


async def test_who_gives_up_keeps_nobody_out() -> None:
    device = Device()
    policy = Watching(["x"])
    policy.device = device
    front = with_device_turns(policy, device.turn)
    await device.lock.acquire()
    waiting: list[Any] = [asyncio.ensure_future(front.propose(request())) for _ in range(2)]
    await asyncio.sleep(0)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    device.lock.release()
    assert await asyncio.wait_for(front.propose(request()), 20)
    await asyncio.sleep(0)
    await asyncio.wait_for(device.time(), 20)


async def test_a_failure_is_passed_on_and_ends_the_round() -> None:
    device = Device()
    front = with_device_turns(ScriptedPolicy([RuntimeError("no")]), device.turn)
    (answer,) = await asyncio.gather(front.propose(request()), return_exceptions=True)
    assert isinstance(answer, RuntimeError)
    await asyncio.wait_for(device.time(), 20)


async def test_batches_stay_batches() -> None:
    device = Device()
    policy = Batches()
    front = with_device_turns(policy, device.turn)
    assert isinstance(front, BatchPolicy)
    assert len(await front.propose_batch([request(), request()])) == 2
    assert policy.sizes == [2]
    assert front.name == "batches"
