"""Saves steps in order in one thread, so that the event loop never waits for the disk.

Steps that come in while a write is under way share the next transaction, so many trajectories cost few commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cudaperf_agent.store.records import Step
from cudaperf_agent.store.repository import Store

T = TypeVar("T")


class StoreWriter:
    """One per run, used from one event loop.

    Args:
        store: Where steps go.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cudaperf-store")
        self._waiting: list[tuple[Step, asyncio.Future[None]]] = []
        self._flushing: asyncio.Task[None] | None = None

    async def save(self, step: Step) -> None:
        """Return once `step` is in the store.

        Raises:
            StoreError: It could not be written.
        """
        saved = asyncio.get_running_loop().create_future()
        self._waiting.append((step, saved))
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        await saved

    async def call(self, function: Callable[[], T]) -> T:
        """Call any function of the store in the same thread, after what is being written."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def aclose(self) -> None:
        """Write what is waiting and end the thread."""
        if self._flushing is not None:
            await self._flushing
        self._thread.shutdown(wait=False)

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            steps = [step for step, _ in batch]
            job = asyncio.get_running_loop().run_in_executor(self._thread, self.store.save_steps, steps)
            await asyncio.wait([job])
            error = job.exception()
            for _, saved in batch:
                if saved.done():
                    continue  # the trajectory was cancelled meanwhile
                if error:
                    saved.set_exception(error)
                else:
                    saved.set_result(None)
