"""The one event loop of the process, in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import concurrent.futures
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
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
            then waited. The next Ctrl-C (without it, the first) cancels and waits for the clean-up, and one more
            waits for nothing.

    Raises:
        KeyboardInterrupt: It was cancelled by Ctrl-C.
    """
    task: asyncio.Task[Any] | None = None
    presses = 0
    gentle = 0 if on_interrupt is None else 1

    async def work() -> T:
        nonlocal task
        task = asyncio.current_task()
        if presses > gentle:
            coroutine.close()
            raise asyncio.CancelledError
        return await coroutine

    def pressed(_signal: int, _frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses == 1 and on_interrupt is not None:
            on_interrupt()
        elif presses == gentle + 1:
            if task is not None:
                _running_loop().call_soon_threadsafe(task.cancel)
        elif presses > gentle + 1:
            raise KeyboardInterrupt

    # Signals are handled in the main thread only; elsewhere Ctrl-C is its owner's business.
    watching = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, pressed) if watching else None
    try:
        return submit(work()).result()
    except concurrent.futures.CancelledError:
        if presses > gentle:
            raise KeyboardInterrupt from None
        raise
    finally:
        if watching:
            signal.signal(signal.SIGINT, before)


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="cudaperf-loop", daemon=True).start()
        return _loop
