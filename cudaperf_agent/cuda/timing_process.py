"""The parent's side of `timer.cu`: one process, contents shown after loading, each call clocked on both sides.

Contents and outputs lie in memory that both processes map (`shared_area`); messages go through pipes. Blocking, for a
thread of its own: an event loop's latency would be part of the parent's clock.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Literal

from cudaperf_agent.cuda.shared_area import SharedArea, layout_of
from cudaperf_agent.errors import CudaPerfError
from cudaperf_agent.execution.lateness import own_waited_seconds, process_within, waited_seconds
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.model import Case, Task, Value

_NOTHING, _LOAD = 0xFFFFFFFE, 0xFFFFFFFD
_CHUNK = 1 << 20
_SAID = 4000
_MOST_TRACE = 64 << 20
_FILE_BYTES = 64 << 20

TimedKind = Literal["device", "end_to_end"]


class TimedProcessEnded(CudaPerfError):
    """The process died or did not answer in time; `timed_out` says which, `status` the call's CUDA error if one."""

    kind = "timing"

    def __init__(self, message: str, *, timed_out: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.status = status


@dataclass(frozen=True, slots=True, eq=False)
class TimedCall:
    """One timed call.

    Attributes:
        content: Index of the content set.
        seconds: By the child's clock: from the call to full synchronisation.
        outside: By the parent's clock: the same and the exchange of two messages.
        late: Seconds that either side waited for a processor meanwhile: the sum, though some may be of `seconds`, too.
        other_cpu: CPU seconds of other threads of the process meanwhile.
        changed: Name of a read-only buffer that changed.
        outputs: By name, as they lie in the shared memory: good until the next call.
    """

    content: int
    seconds: float
    outside: float
    late: float
    other_cpu: float
    changed: str | None
    outputs: dict[str, Value]


@dataclass(slots=True)
class TimedProcess:
    """A running timer. Use as a context manager; every method may raise `TimedProcessEnded`.

    Args:
        argv: Timer, library, kind, and perhaps the tracer, unwrapped.
        task: The task.
        contents: Cases of one size: the content sets.
        deadline: Seconds until the whole process is stopped.
        wrap: The sandbox.
        env: Extra environment variables.
    """

    argv: Sequence[str]
    task: Task
    contents: Sequence[Case]
    deadline: float
    wrap: Wrap | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    load_seconds: float = 0.0
    _process: subprocess.Popen[bytes] | None = None
    _folder: Path | None = None
    _words: IO[bytes] | None = None
    _area: SharedArea | None = None
    _until: float = 0.0
    _pid: int = 0

    def __enter__(self) -> TimedProcess:
        self._folder = Path(tempfile.mkdtemp(prefix="cudaperf-timer-"))
        self._until = time.monotonic() + self.deadline
        base = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "OMP_NUM_THREADS": "1",
            "LC_ALL": "C",
        }
        self._area = SharedArea(layout_of(self.task, self.contents))
        argv = [*self.argv, str(self._area.descriptor)]
        self._words = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self.wrap(argv, self._folder) if self.wrap else argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            cwd=self._folder,
            env={**base, **self.env},
            start_new_session=True,
            pass_fds=(self._area.descriptor,),
            bufsize=0,
        )
        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._words is not None:
            self._words.close()
        if self._area is not None:
            self._area.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def stage(self, *, poison: int, flush_bytes: int) -> None:
        """Wait until the library is loaded, then show it the contents."""
        self._expect(b"L")
        (self.load_seconds,) = struct.unpack("<d", self._get(8))
        assert self._area is not None
        layout = self._area.layout
        self._area.fill(self.contents)
        self._put(struct.pack("<IIIQ", len(layout.arguments), layout.sets, poison, flush_bytes))
        self._put(b"".join(struct.pack("<IQ", a.kind, a.size) for a in layout.arguments))
        self._expect(b"S")
        assert self._process is not None
        self._pid = process_within(self._process.pid, self.argv[0])

    def extend(self, seconds: float) -> None:
        """Give the process `seconds` from now: it may have waited for its turn."""
        self._until = time.monotonic() + seconds

    def exchange(self) -> float:
        """Seconds of an exchange around no call at all."""
        self._put(struct.pack("<I", _NOTHING))
        self._expect(b"R")
        started = time.perf_counter()
        self._put(b"G")
        self._expect(b"D")
        return time.perf_counter() - started

    def call(self, content: int) -> TimedCall:
        """One call on content set `content`."""
        self._put(struct.pack("<I", content))
        self._expect(b"R")
        waited = waited_seconds(self._pid) + own_waited_seconds()
        started = time.perf_counter()
        self._put(b"G")
        self._expect(b"D")
        outside = time.perf_counter() - started
        late = waited_seconds(self._pid) + own_waited_seconds() - waited
        status, synchronised, seconds, other = struct.unpack("<iidd", self._get(24))
        if status or synchronised:
            raise TimedProcessEnded(
                f"the call returned CUDA error {status or synchronised}", status=status or synchronised
            )
        (index,) = struct.unpack("<i", self._get(4))
        assert self._area is not None
        outputs = self._area.outputs(self.contents[content])
        changed = list(self.task.inputs())[index].name if index >= 0 else None
        return TimedCall(content, seconds, outside, late, other, changed, outputs)

    def load(self, library: Path) -> None:
        """Another library from now on, in the same process: only for code that is trusted as our own."""
        assert self._folder is not None
        copy = self._folder / f"{secrets.token_hex(8)}.so"
        shutil.copyfile(library, copy)  # the sandbox cannot show what it did not know of when it was made
        copy.chmod(0o644)
        name = str(copy).encode()
        self._put(struct.pack("<II", _LOAD, len(name)) + name)
        self._expect(b"L")
        (self.load_seconds,) = struct.unpack("<d", self._get(8))

    def trace(self) -> str:
        """What the tracer recorded of the last call."""
        (length,) = struct.unpack("<Q", self._get(8))
        if length > _MOST_TRACE:
            raise TimedProcessEnded("the trace is longer than any that is of use")
        return self._get(length).decode("utf-8", "replace")

    def _expect(self, letter: bytes) -> None:
        got = self._get(1)
        if got != letter:
            raise TimedProcessEnded("the process does not follow the protocol")

    def _put(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        view, descriptor = memoryview(data), self._process.stdin.fileno()
        while view:
            _, ready, _ = select.select([], [descriptor], [], max(0.0, self._until - time.monotonic()))
            if not ready:
                raise TimedProcessEnded("the process did not end in time", timed_out=True)
            try:
                view = view[os.write(descriptor, view[:_CHUNK]) :]
            except BrokenPipeError:
                raise TimedProcessEnded(self._said()) from None

    def _get(self, size: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        parts, descriptor = bytearray(), self._process.stdout.fileno()
        while len(parts) < size:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, self._until - time.monotonic()))
            if not ready:
                raise TimedProcessEnded("the process did not answer in time", timed_out=True)
            chunk = os.read(descriptor, min(_CHUNK, size - len(parts)))
            if not chunk:
                raise TimedProcessEnded(self._said())
            parts += chunk
        return bytes(parts)

    def _said(self) -> str:
        assert self._process is not None
        assert self._words is not None
        code = self._process.wait()
        self._words.seek(0)
        said = self._words.read(_SAID).decode("utf-8", "replace").strip()
        return f"the process ended with status {code}" + (f": {said.splitlines()[-1]}" if said else "")
