"""Work that is done once per key, also when it is asked for several times at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Results by key; failures are not kept, and the oldest results go first.

    Args:
        remembered: Most results kept.
        keep: Whether a result may be given again; all may where `None`.
    """

    def __init__(self, remembered: int, keep: Callable[[T], bool] | None = None) -> None:
        self._remembered = remembered
        self._keep = keep
        self._jobs: OrderedDict[str, asyncio.Task[T]] = OrderedDict()

    async def get(self, key: str, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result for `key`, made by `make` if nobody does yet. A cancelled waiter does not stop the others."""
        job = self._jobs.get(key)
        if job is None or (job.done() and not self._lasts(job)):
            job = self._jobs[key] = asyncio.get_running_loop().create_task(make())
        self._jobs.move_to_end(key)
        while len(self._jobs) > self._remembered and next(iter(self._jobs.values())).done():
            self._jobs.popitem(last=False)
        return await asyncio.shield(job)

    def _lasts(self, job: asyncio.Task[T]) -> bool:
        if job.cancelled() or job.exception() is not None:
            return False
        return self._keep is None or self._keep(job.result())

    async def aclose(self) -> None:
        """Cancel what still runs."""
        pending = [job for job in self._jobs.values() if not job.done()]
        for job in pending:
            job.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
