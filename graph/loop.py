"""The one event loop of the process, in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def submit(coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Start `coroutine` on the process's loop and return at once."""
    return asyncio.run_coroutine_threadsafe(coroutine, _running_loop())


def run(coroutine: Coroutine[Any, Any, T], *, on_interrupt: Callable[[], None] | None = None) -> T:
    """Run `coroutine` on the process's loop and wait for it.

    Args:
        coroutine: What to run.
        on_interrupt: Called at the first Ctrl-C, to ask for a graceful end (`RunControl.request_drain`), for which is
            then waited; the second Ctrl-C, or the first without it, cancels.

    Raises:
        KeyboardInterrupt: It was cancelled.
    """
    future = submit(coroutine)
    asked = on_interrupt is None
    while True:
        try:
            return future.result()
        except KeyboardInterrupt:
            if asked:
                future.cancel()
                raise
            asked = True
            assert on_interrupt is not None
            on_interrupt()


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="cudaperf-loop", daemon=True).start()
        return _loop
