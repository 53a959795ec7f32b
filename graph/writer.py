"""Saves steps in order in one thread, so that the event loop never waits for the disk.

Steps that come in while a write is under way share the next transaction, so many trajectories cost few commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from cudaperf_agent.store.records import Step
from cudaperf_agent.store.repository import Store

T = TypeVar("T")
_Entry = tuple[Step, "asyncio.Future[None]"]


@asynccontextmanager
async def shared_writer(store: Store) -> AsyncIterator[StoreWriter]:
    """The writer of a store: all runs that are at work on this event loop share one thread and its transactions."""
    key = (id(asyncio.get_running_loop()), id(store))
    shared = _shared.setdefault(key, _Shared(StoreWriter(store)))
    shared.users += 1
    try:
        yield shared.writer
    finally:
        shared.users -= 1
        if not shared.users:
            del _shared[key]
            await shared.writer.aclose()


class StoreWriter:
    """Used from one event loop; see `shared_writer`.

    Args:
        store: Where steps go.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cudaperf-store")
        self._waiting: list[_Entry] = []
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
            error = await self._write(batch)
            if error is None or len(batch) == 1:
                _settle(batch, error)
                continue
            # One bad step (its run was deleted, say) must not take the others with it.
            for entry in batch:
                _settle([entry], await self._write([entry]))

    async def _write(self, batch: list[_Entry]) -> BaseException | None:
        steps = [step for step, _ in batch]
        job = asyncio.get_running_loop().run_in_executor(self._thread, self.store.save_steps, steps)
        await asyncio.wait([job])
        return job.exception()


def _settle(batch: list[_Entry], error: BaseException | None) -> None:
    for _, saved in batch:
        if saved.done():
            continue  # the trajectory was cancelled meanwhile
        if error:
            saved.set_exception(error)
        else:
            saved.set_result(None)


@dataclass(slots=True)
class _Shared:
    writer: StoreWriter
    users: int = 0


_shared: dict[tuple[int, int], _Shared] = {}
