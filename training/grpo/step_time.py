"""Where a step's time goes, and who may use the GPU when.

Generating, verifying and timing overlap; every moment counts once, for the first of: learning, generating, timing,
verifying, waiting. So ``verifying`` is what verification adds to the step, not the processor time it takes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Literal

Activity = Literal["learning", "generating", "timing", "verifying"]

_ORDER: tuple[Activity, ...] = ("learning", "generating", "timing", "verifying")
ON_GPU = ("learning", "generating", "timing")
"""Activities that keep the GPU busy."""


class StepMeter:
    """Counts the seconds of each activity. Threads may share one meter.

    Args:
        clock: Seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._active: Counter[str] = Counter()
        self._spent: dict[str, float] = dict.fromkeys((*_ORDER, "waiting"), 0.0)
        self._since = clock()

    @contextmanager
    def during(self, activity: Activity) -> Iterator[None]:
        """Count the time inside."""
        self.begin(activity)
        try:
            yield
        finally:
            self.end(activity)

    def begin(self, activity: Activity) -> None:
        """From now on the activity goes on (once more, if it does already)."""
        with self._lock:
            self._account()
            self._active[activity] += 1

    def end(self, activity: Activity) -> None:
        """One who began the activity has ended it; ending what did not begin changes nothing."""
        with self._lock:
            self._account()
            self._active[activity] = max(0, self._active[activity] - 1)

    def take(self) -> dict[str, float]:
        """Seconds by activity, and ``waiting``, since the last call."""
        with self._lock:
            self._account()
            spent, self._spent = self._spent, dict.fromkeys(self._spent, 0.0)
            return spent

    def _account(self) -> None:
        now = self._clock()
        current = next((a for a in _ORDER if self._active[a]), "waiting")
        self._spent[current] += now - self._since
        self._since = now


class GpuTurns:
    """Lets either generation or timing have the GPU: many of one kind at once, never both kinds.

    A kind goes on as long as it is asked for; the other follows when none of it is left. Trajectories that wait for
    their times do not generate, so neither can wait for ever. Used from one event loop.
    """

    def __init__(self) -> None:
        self._users: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def use(self, kind: Literal["generating", "timing"]) -> AsyncIterator[None]:
        """Hold the GPU for `kind`."""
        other = "timing" if kind == "generating" else "generating"
        async with self._changed:
            await self._changed.wait_for(lambda: not self._users[other])
            self._users[kind] += 1
        try:
            yield
        finally:
            async with self._changed:
                self._users[kind] -= 1
                self._changed.notify_all()
