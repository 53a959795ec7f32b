"""Calls of a shared library in a child process: raw arguments in, raw outputs out, nothing shared with the parent.

The library exports ``extern "C" void cudaperf_call(void *const *args)`` (and optionally ``cudaperf_setup`` of the same
type, called first with the same arguments): ``args[i]`` is the address of argument i, a buffer's first byte or a
scalar's storage. `tasks.stub` writes both for a task.

Request file: u32 cases, u32 arguments, then per case and argument u64 size, u32 flags (1 returned to the parent,
2 filled instead of sent), u32 fill byte, and the bytes unless filled. Response file: per case ``DONE``, i32 status,
f64 seconds, the returned buffers, u64 length and text of the emulator's report; or ``FAULT``, i32 signal, i32 argument,
i32 writing, i64 offset, u64 address where a guard page was hit.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import DEFAULT_LIMITS, ChildResult, Limits, run_child
from cudaperf_agent.execution.paths import cache_dir

_DONE, _FAULT = 0x454E4F44, 0x544C5546
_UNDERRUN = 2
_LARGE = 1 << 20
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """One argument of a native call.

    Attributes:
        data: Its bytes before the call (any contiguous array).
        returned: Whether its bytes after the call come back.
        fill: If set, the child fills the buffer with this byte instead of being sent `data`'s content.
    """

    data: npt.NDArray[Any]
    returned: bool = False
    fill: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An access outside every buffer: argument index (`None` if near none), byte offset from its start, and kind."""

    signal: int
    argument: int | None
    offset: int
    writing: bool


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One call that returned.

    Attributes:
        outputs: Bytes after the call of every returned argument, by argument index, in the dtype it was sent.
        seconds: By the child's own clock; for explanation, never for a verdict.
        underrun: Bytes just before a buffer were changed.
        report: What the emulator's checker found, as JSON text; empty elsewhere.
    """

    outputs: dict[int, npt.NDArray[Any]]
    seconds: float
    underrun: bool
    report: str


@dataclass(frozen=True, slots=True, eq=False)
class NativeRun:
    """All calls of one child: those that returned, in order, the fault that ended it if one did, and how it ended."""

    outcomes: tuple[Outcome, ...]
    fault: Fault | None
    child: ChildResult


Wrap = Callable[[list[str], Path], list[str]]
"""Puts a command line into a sandbox whose only writable folder is the given one."""


class Worker(Protocol):
    """A process that was started before there was a job for it."""

    @property
    def folder(self) -> Path:
        """The only one that it can write to."""
        ...

    async def work(self, library: Path, request: Path, response: Path, limits: Limits) -> ChildResult:
        """Do the one job; the process is gone afterwards."""
        ...


async def call_native(
    library: Path,
    calls: Sequence[Sequence[Argument]],
    *,
    limits: Limits = DEFAULT_LIMITS,
    preload: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
    wrap: Wrap | None = None,
    worker: Worker | None = None,
) -> NativeRun:
    """Call `library` once per element of `calls`, in one child process.

    Args:
        library: Shared object with ``cudaperf_call``.
        calls: Arguments of each call; every call has the same number of them.
        limits: For the whole child.
        preload: Libraries to load globally first (the emulator's runtime).
        env: Extra environment variables; ``CUDAPERF_PLACE_LEFT=1`` puts buffers right after a guard page (which finds
            underruns) in place of right before one.
        wrap: The sandbox; `None` runs the child bare.
        worker: A process that waits for its job (`standby.Standby`), in place of a new one; `preload`, `env` and
            `wrap` are then its own.

    Raises:
        BackendUnavailable: There is no C++ compiler to build the runner with.
    """
    large = sum(argument.data.nbytes for arguments in calls for argument in arguments) > _LARGE
    folder = worker.folder if worker is not None else Path(tempfile.mkdtemp(prefix="cudaperf-call-"))
    try:
        request, response = folder / "request", folder / "response"
        await _off_loop(large, _write_request, request, calls)
        if worker is not None:
            child = await worker.work(library, request, response, limits)
        else:
            argv = [str(runner_program()), str(request), str(response), str(library), *(str(p) for p in preload)]
            child = await run_child(
                wrap(argv, folder) if wrap else argv,
                limits=limits,
                cwd=folder,
                env={**child_environment(folder), **(env or {})},
            )
        raw = await _off_loop(large, read_untrusted, response, limits.file_bytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcomes, fault = _read_response(raw, calls)
    return NativeRun(outcomes, fault, child)


async def _off_loop(large: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Megabytes are written and read beside the event loop; for less, a thread would cost more than it frees."""
    return await asyncio.to_thread(work, *args, **kwargs) if large else work(*args, **kwargs)


def read_untrusted(path: Path, most: int) -> bytes:
    """A file that foreign code may have replaced: links, pipes and what is over `most` bytes are not read (empty)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(info.st_mode) and info.st_size <= most else b""


def child_environment(folder: Path) -> dict[str, str]:
    """All that a child sees of our environment."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "1",
    }


def _write_request(path: Path, calls: Sequence[Sequence[Argument]]) -> None:
    with path.open("wb") as out:
        out.write(struct.pack("<II", len(calls), len(calls[0]) if calls else 0))
        for arguments in calls:
            for argument in arguments:
                filled = argument.fill is not None
                flags = (1 if argument.returned else 0) | (2 if filled else 0)
                out.write(struct.pack("<QII", argument.data.nbytes, flags, argument.fill or 0))
                if not filled:
                    out.write(np.ascontiguousarray(argument.data).reshape(-1).view(np.uint8).data)


def _read_response(raw: bytes, calls: Sequence[Sequence[Argument]]) -> tuple[tuple[Outcome, ...], Fault | None]:
    outcomes: list[Outcome] = []
    at = 0
    try:
        for arguments in calls:
            if at >= len(raw):
                break
            (record,) = struct.unpack_from("<I", raw, at)
            at += 4
            if record == _FAULT:
                number, which, writing, offset, _ = struct.unpack_from("<iiiqQ", raw, at)
                return tuple(outcomes), Fault(number, which if which >= 0 else None, offset, bool(writing))
            if record != _DONE:
                break
            status, seconds = struct.unpack_from("<id", raw, at)
            at += 12
            outputs: dict[int, npt.NDArray[Any]] = {}
            for index, argument in enumerate(arguments):
                if argument.returned:
                    size = argument.data.nbytes
                    if at + size > len(raw):
                        return tuple(outcomes), None
                    flat = np.frombuffer(raw, dtype=argument.data.dtype, count=argument.data.size, offset=at)
                    outputs[index] = flat.reshape(argument.data.shape)
                    at += size
            (length,) = struct.unpack_from("<Q", raw, at)
            at += 8
            report = raw[at : at + length].decode("utf-8", "replace")
            at += length
            outcomes.append(Outcome(outputs, seconds, status == _UNDERRUN, report))
    except struct.error:
        pass  # the child died while writing: what is whole counts
    return tuple(outcomes), None


@lru_cache(maxsize=1)
def runner_program() -> Path:
    """The compiled runner, built once per version of its source into the cache folder.

    Raises:
        BackendUnavailable: g++ is missing or fails.
    """
    source = Path(__file__).with_name("runner.cpp")
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    program = cache_dir() / "runner" / key / "runner"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    building = program.with_name(f"runner.{os.getpid()}")
    command = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-o", str(building), str(source), "-ldl"]
    try:
        # In a session of its own: Ctrl-C lets the step at work end, of which this may be part.
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, start_new_session=True)
    except FileNotFoundError as error:
        raise BackendUnavailable(
            "g++ is not installed, and native code cannot be tested without it",
            hint="Install a C++ compiler, e.g. `apt-get install g++`.",
        ) from error
    if done.returncode:
        raise BackendUnavailable(f"the runner does not compile: {done.stderr.strip()[:400]}")
    os.replace(building, program)
    return program
