"""Where a screen's events come from: a run in this process, or the store (also of a run that another process is at)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from cudaperf_agent.errors import CudaPerfError
from cudaperf_agent.store.repository import Store
from graph.events import Event
from graph.replay import follow_events

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

Start = Callable[[Callable[[Event], None], "RunControl"], Awaitable[Any]]
"""Starts a run: takes the listener of its events and the control by which it is drained."""


class Session(Protocol):
    """A source of one run's events."""

    @property
    def live(self) -> bool:
        """Whether `stop` can end it."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Every event, until there are no more."""
        ...

    def stop(self) -> None:
        """End the run after the node at work; it stays resumable."""
        ...


class StoredSession:
    """A run as the store tells it, followed for as long as a process is at work on it."""

    live = False

    def __init__(self, store: Store, run_id: str, *, poll_seconds: float = 0.5) -> None:
        self._store, self._run_id, self._poll = store, run_id, poll_seconds

    def events(self) -> AsyncIterator[Event]:
        """What is stored, then what is added.

        Raises:
            StoreError: There is no such run.
        """
        return follow_events(self._store, self._run_id, poll_seconds=self._poll)

    def stop(self) -> None:
        """Nothing: the process at work on it is another one."""


class LiveSession:
    """A run of this process, on the loop of whoever reads its events.

    Attributes:
        error: By which the run ended, if it did.
    """

    live = True

    def __init__(self, start: Start) -> None:
        self._start = start
        self._control: RunControl | None = None
        self._running: asyncio.Task[Any] | None = None
        self.error: CudaPerfError | None = None

    async def events(self) -> AsyncIterator[Event]:
        """Start the run and give its events; an error of the run comes out here once they are told.

        The run outlives a reader that goes away; `settle` waits for it.

        Raises:
            CudaPerfError: As the run does.
        """
        from langgraph.runtime import RunControl

        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        control = self._control = RunControl()

        async def run() -> Any:
            try:
                return await self._start(queue.put_nowait, control)
            except CudaPerfError as error:
                self.error = error
                raise
            finally:
                queue.put_nowait(None)

        self._running = asyncio.create_task(run())
        while (event := await queue.get()) is not None:
            yield event
        await asyncio.shield(self._running)

    def stop(self) -> None:
        """End the run after the node at work."""
        if self._control is not None:
            self._control.request_drain()

    @property
    def at_work(self) -> bool:
        """Whether the run has begun and not ended."""
        return self._running is not None and not self._running.done()

    async def settle(self) -> Any:
        """End the run after the node at work, wait for that, and give what it came to; `None` if it never began.

        Raises:
            CudaPerfError: As the run did.
        """
        if self._running is None:
            return None
        self.stop()
        return await self._running
