"""Long work says that it goes on, and says less the longer it takes."""

from __future__ import annotations

import asyncio

from cudaperf_agent.cli.still import StillConfig, still_saying


async def test_silence_is_broken_and_lines_pass_through() -> None:
    said: list[str] = []
    enough = asyncio.Event()

    def say(text: str) -> None:
        said.append(text)
        if len(said) >= 4:
            enough.set()

    async with still_saying(say, "at work", StillConfig(first=0.001)) as telling:
        telling("[1/2] done")
        await asyncio.wait_for(enough.wait(), 10)
    assert said[0] == "[1/2] done"
    assert all(line.startswith("still at work: ") for line in said[1:])


async def test_nothing_is_said_after_the_end_or_in_good_time() -> None:
    said: list[str] = []
    async with still_saying(said.append, "at work", StillConfig(first=60.0)) as telling:
        telling("quick")
        await asyncio.sleep(0)
    assert said == ["quick"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
