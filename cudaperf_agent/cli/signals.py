"""A termination ends a command like an interruption: what is at work is finished and stored."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def termination_interrupts(*, hangup: bool = False) -> Iterator[None]:
    """SIGTERM does what Ctrl-C would, also where Ctrl-C is ignored, as in a script's background job.

    Args:
        hangup: Whether a closed terminal (SIGHUP) does so too.
    """
    numbers = [signal.SIGTERM]
    # What nohup began outlives its terminal.
    if hangup and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
