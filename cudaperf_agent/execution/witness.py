"""A process of ours that does nothing for a while: what this process's clock adds to a call of another process.

It is asked beside a candidate's calls, by the same two messages and for about as long, so that a busy machine is as
busy for both. Nothing of the candidate is in it: one that slows its own messages down does not change what these cost.
Blocking, for the thread that clocks the calls.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import subprocess
import time
from dataclasses import dataclass
from types import TracebackType

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.lateness import own_waited_seconds, waited_seconds
from cudaperf_agent.execution.native import runner_program


@dataclass(slots=True)
class Witness:
    """The process. A context manager.

    Args:
        seconds: It must answer within these.
    """

    seconds: float = 10.0
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Witness:
        argv = [str(runner_program()), "--clock"]
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C lets the step at work end, of which this is part
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def null_call(self, seconds: float) -> float:
        """What the clock of this process adds to a call of this length, less what either side waited for a processor.

        Args:
            seconds: How long the other side is busy.

        Returns:
            Seconds.

        Raises:
            BackendUnavailable: It does not answer: the machine fails.
        """
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            os.write(process.stdin.fileno(), struct.pack("<d", seconds))
            self._get(1)
            waited = waited_seconds(process.pid) + own_waited_seconds()
            started = time.perf_counter()
            os.write(process.stdin.fileno(), b"G")
            self._get(1)
            outside = time.perf_counter() - started
            waited = waited_seconds(process.pid) + own_waited_seconds() - waited
            (inside,) = struct.unpack("<d", self._get(8))
        except OSError as error:
            raise BackendUnavailable(f"the process for empty calls ended: {error}") from error
        return float(max(0.0, outside - inside - waited))

    def _get(self, size: int) -> bytes:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        parts, descriptor = b"", process.stdout.fileno()
        while len(parts) < size:
            if not select.select([descriptor], [], [], self.seconds)[0]:
                raise BackendUnavailable(f"the process for empty calls did not answer within {self.seconds:g} s")
            chunk = os.read(descriptor, size - len(parts))
            if not chunk:
                raise BackendUnavailable("the process for empty calls ended")
            parts += chunk
        return parts
