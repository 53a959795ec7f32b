"""A command on a terminal of its own, typed at and read from as a person would."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class OnTerminal:
    """A command on a terminal of its own, 100 by 30."""

    args: list[str]
    seen: str = ""
    _fd: int = -1
    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> OnTerminal:
        self._fd, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cudaperf_agent.cli.main", *self.args],
            cwd=ROOT,
            stdin=other,
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(other)
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._fd)

    def until(self, text: str, *, seconds: float = 60.0) -> None:
        """Read what it shows until `text` is there."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} never came: {self.seen[-2000:]!r}"
            self._read()

    def _read(self) -> None:
        if select.select([self._fd], [], [], 0.2)[0]:
            try:
                self.seen += os.read(self._fd, 65536).decode("utf-8", errors="replace")
            except OSError:  # the other side is closed
                self.seen += "\0END"

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._fd, keys.encode())

    def end(self, *, seconds: float = 60.0) -> int:
        """The exit code, once it has ended."""
        assert self.process is not None
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.seen[-2000:]!r}"
            self._read()
        self._read()
        return self.process.returncode
