"""Who may be at the device when: what is timed is alone, nobody waits behind a queue, nobody starves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import cast

import pytest

from cudaperf_agent.cuda.measure import Stopwatch
from cudaperf_agent.cuda.timing import TIMING, TimedRun
from cudaperf_agent.cuda.turns import Gate, Turns, TurnsConfig


async def steps(count: int = 20) -> None:
    """Let everybody go on as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


class Work:
    """Jobs past a gate, ended by hand, with a log of who came in."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.inside: set[str] = set()
        self._ends: dict[str, asyncio.Event] = {}

    def start(self, name: str, gate: Gate) -> asyncio.Task[None]:
        return self._begun(name, gate)

    def time(self, name: str, turns: Turns, *, cpu: bool = False) -> asyncio.Task[None]:
        return self._begun(name, turns.alone(cpu=cpu))

    def _begun(self, name: str, place: AbstractAsyncContextManager[None]) -> asyncio.Task[None]:
        self._ends[name] = asyncio.Event()

        async def job() -> None:
            async with place:
                self.log.append(name)
                self.inside.add(name)
                try:
                    await self._ends[name].wait()
                finally:
                    self.inside.discard(name)

        return asyncio.create_task(job())

    def end(self, name: str) -> None:
        self._ends[name].set()


AT_ONCE = TurnsConfig(open_seconds=0.0, phase_seconds=1000.0)


async def test_a_gate_lets_so_many_in_and_in_order() -> None:
    work, gate = Work(), Gate(2)
    jobs = [work.start(name, gate) for name in "abcd"]
    await steps()
    assert work.log == ["a", "b"]
    work.end("b")
    await steps()
    assert work.log == ["a", "b", "c"]
    jobs[3].cancel()
    for name in "ac":
        work.end(name)
    await asyncio.gather(*jobs, return_exceptions=True)
    assert work.log == ["a", "b", "c"]
    assert gate.idle


async def test_timing_waits_for_who_is_inside_and_not_for_who_queues() -> None:
    work, gate = Work(), Gate(1)
    turns = Turns((gate,), (), AT_ONCE)
    jobs = [work.start("inside", gate), work.start("queued", gate)]
    await steps()
    jobs.append(work.time("timed", turns))
    await steps()
    assert work.log == ["inside"]
    work.end("inside")
    await steps()
    assert work.log == ["inside", "timed"], "nothing that queued came between"
    work.end("timed")
    await steps()
    assert work.log == ["inside", "timed", "queued"]
    work.end("queued")
    await asyncio.gather(*jobs)


async def test_turns_follow_each_other_and_those_that_need_the_processors_come_last() -> None:
    work, device, processors = Work(), Gate(1), Gate(2)
    turns = Turns((device,), (processors,), AT_ONCE)
    jobs = [work.start("compile", processors), work.start("test", device)]
    await steps()
    jobs += [work.time("whole", turns, cpu=True), work.time("one", turns), work.time("two", turns)]
    jobs += [work.start("later test", device)]
    await steps()
    work.end("test")
    await steps()
    assert work.inside == {"compile", "one"}, "a compiler does not disturb a time of the device"
    jobs.append(work.start("later compile", processors))
    for name in ("one", "two"):
        work.end(name)
        await steps()
    assert work.inside == {"compile"}, "a time of the processors waits for it, and lets no other begin"
    work.end("compile")
    await steps()
    assert work.inside == {"whole"}
    work.end("whole")
    await steps()
    assert work.inside == {"later test", "later compile"}
    for name in ("later test", "later compile"):
        work.end(name)
    await asyncio.gather(*jobs)
    assert work.log == ["compile", "test", "one", "two", "whole", "later test", "later compile"]


async def test_who_queues_is_let_in_after_a_phase() -> None:
    work, gate = Work(), Gate(1)
    turns = Turns((gate,), (), TurnsConfig(open_seconds=0.0, phase_seconds=0.0))
    jobs = [work.time("first", turns)]
    await steps()
    jobs += [work.start("queued", gate), work.time("second", turns)]
    await steps()
    work.end("first")
    await asyncio.wait_for(until(lambda: "queued" in work.inside), 5)
    assert work.log == ["first", "queued"]
    work.end("queued")
    await asyncio.wait_for(until(lambda: "second" in work.inside), 5)
    work.end("second")
    await asyncio.gather(*jobs)


async def test_a_time_of_the_processors_that_has_waited_for_a_phase_comes_first() -> None:
    work, gate = Work(), Gate(1)
    turns = Turns((gate,), (), TurnsConfig(open_seconds=0.0, phase_seconds=0.0))
    jobs = [work.time("first", turns), work.time("whole", turns, cpu=True), work.time("second", turns)]
    await steps()
    work.end("first")
    await asyncio.wait_for(until(lambda: len(work.log) == 2), 5)
    assert work.log == ["first", "whole"]
    for name in ("whole", "second"):
        work.end(name)
    await asyncio.gather(*jobs)


async def test_the_gates_stay_open_for_what_gets_ready() -> None:
    work, gate = Work(), Gate(1)
    turns = Turns((gate,), (), TurnsConfig(open_seconds=1000.0))
    jobs = [work.start("inside", gate), work.start("queued", gate), work.time("timed", turns)]
    await steps()
    work.end("inside")
    await steps()
    assert work.inside == {"queued"}
    work.end("queued")
    await asyncio.wait_for(until(lambda: "timed" in work.inside), 5)
    work.end("timed")
    await asyncio.gather(*jobs)


@pytest.mark.parametrize("granted", [False, True])
async def test_a_turn_that_is_given_up_stops_nobody(granted: bool) -> None:
    work, gate = Work(), Gate(1)
    turns = Turns((gate,), (), AT_ONCE)
    jobs = [work.start("inside", gate)] if not granted else []
    await steps()
    given_up = work.time("given up", turns)
    await steps()
    given_up.cancel()
    for job in jobs:
        work.end("inside")
        await job
    jobs = [work.time("next", turns)]
    await asyncio.wait_for(until(lambda: "next" in work.inside), 5)
    jobs.append(work.start("queued", gate))
    work.end("next")
    await asyncio.wait_for(until(lambda: "queued" in work.inside), 5)
    work.end("queued")
    await asyncio.gather(*jobs)
    assert given_up.cancelled()


async def until(true: Callable[[], bool]) -> None:
    """Until it is so; it comes about by other tasks, in a few of their steps."""
    for _ in iter(true, True):
        await asyncio.sleep(0)


async def test_a_process_is_ended_also_by_who_gives_up_waiting_for_the_gate(tmp_path: Path) -> None:
    ended: list[str] = []

    class Run:
        def close(self) -> None:
            ended.append("ended")

    gate = Gate(1)
    watch = Stopwatch(tmp_path / "timer", TIMING, staging=gate)
    gate.shut()
    closing = asyncio.create_task(watch._closed([cast(TimedRun, Run())]))
    await steps()
    assert not ended, "not while calls are timed"
    closing.cancel()
    await asyncio.wait([closing])
    assert ended == ["ended"]
    gate.open()
    await watch._closed([cast(TimedRun, Run())])
    assert ended == ["ended"] * 2
    assert gate.idle
