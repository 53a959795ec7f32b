"""The parent's side of `timed.py`: one process, told call by call what to do, each call clocked on both sides.

Blocking, for a thread of its own: an event loop's latency would be part of the parent's clock.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from cudaperf_agent.errors import CudaPerfError

_LONGEST_ANSWER = 1 << 20
_SAID = 2000


class TimedEnded(CudaPerfError):
    """The process died, or did not answer in time."""

    kind = "timing"

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


def seconds_of(answer: Mapping[str, Any], name: str = "seconds") -> float:
    """A time that a process says; differences of its clocks may lie a little below zero.

    Raises:
        TimedEnded: There is none, or it is no finite number.
    """
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TimedEnded("an answer cannot be read")
    return float(value)


class TimedModule:
    """A running process. A context manager; every method may raise `TimedEnded`.

    Args:
        argv: In the sandbox already.
        folder: Its folder.
        env: Its whole environment.
        deadline: Seconds until it is stopped.
    """

    def __init__(self, argv: Sequence[str], folder: Path, env: Mapping[str, str], deadline: float) -> None:
        self._argv = list(argv)
        self._folder = folder
        self._env = dict(env)
        self._deadline = deadline
        self._until = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._words: IO[bytes] | None = None
        self._pending = b""

    def __enter__(self) -> TimedModule:
        self._until = time.monotonic() + self._deadline
        self._words = (self._folder / "said").open("w+b")
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            cwd=self._folder,
            env=self._env,
            start_new_session=True,
            bufsize=0,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        self.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, self._words):
            if pipe is not None:
                pipe.close()

    def kill(self) -> None:
        """End it now; whoever waits for an answer is told so."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def renew(self) -> None:
        """Let its time begin anew: what it waited for its turn does not count."""
        self._until = time.monotonic() + self._deadline

    def answer(self) -> dict[str, Any]:
        """The next line of the process."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        while b"\n" not in self._pending:
            left = self._until - time.monotonic()
            ready = select.select([process.stdout], [], [], max(0.0, left))[0]
            if not ready:
                raise TimedEnded(f"no answer within {self._deadline:g} s", timed_out=True)
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk or len(self._pending) > _LONGEST_ANSWER:
                raise TimedEnded(f"the process ended: {self._last_words()}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError as error:
            raise TimedEnded("an answer cannot be read") from error
        if not isinstance(found, dict):
            raise TimedEnded("an answer cannot be read")
        return found

    def ask(self, words: str) -> dict[str, Any]:
        """Send a line and wait for the answer."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(words.encode() + b"\n")
        except OSError as error:
            raise TimedEnded(f"the process ended: {self._last_words()}") from error
        return self.answer()

    def clocked(self, words: str) -> tuple[dict[str, Any], float]:
        """As `ask`, and how long it took by this process's clock."""
        started = time.perf_counter()
        found = self.ask(words)
        return found, time.perf_counter() - started

    def _last_words(self) -> str:
        assert self._words is not None
        self._words.flush()
        text = (self._folder / "said").read_bytes()[-_SAID:].decode("utf-8", "replace").strip()
        return text.splitlines()[-1][:300] if text else "it said nothing"
