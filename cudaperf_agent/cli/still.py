"""Says now and then that long work goes on, where its own lines are minutes apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StillConfig:
    """When to speak.

    Attributes:
        first: Seconds of silence before the first line.
        growth: Each further silence is so many times as long, so that a log of hours stays short.
        longest: Seconds of silence at most.
    """

    first: float = 2.0
    growth: float = 2.0
    longest: float = 300.0


@asynccontextmanager
async def still_saying(say: Say, what: str, config: StillConfig | None = None) -> AsyncIterator[Say]:
    """Yield a `say` to use instead; while it is not used, ``still WHAT: 4 s`` is said from time to time.

    Args:
        say: Prints a line.
        what: What is being done, as in "at work".
        config: When.
    """
    config = config or StillConfig()
    spoken = asyncio.Event()
    loop = asyncio.get_running_loop()
    begun = monotonic()

    def telling(text: str) -> None:
        loop.call_soon_threadsafe(spoken.set)
        say(text)

    async def watch() -> None:
        silence = config.first
        while True:
            try:
                # Not wait_for: in Python 3.11 it loses a cancellation that comes when the event has just been set.
                async with asyncio.timeout(silence):
                    await spoken.wait()
                spoken.clear()
                silence = config.first
            except TimeoutError:
                say(f"still {what}: {monotonic() - begun:.0f} s")
                silence = min(silence * config.growth, config.longest)

    watching = asyncio.create_task(watch())
    try:
        yield telling
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
