"""One child process under limits of time, memory, processes, file size and output; its whole group dies with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
# Looked at often at first, then less: each look at each of many children costs the event loop a part of a millisecond.
_POLL_SECONDS, _POLL_MOST, _POLL_GROWTH = 0.02, 0.1, 1.3
_MOST_PROCESSES = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may use. `memory` is resident bytes over its process group, polled, so a short peak can pass unseen.

    Address space is never limited: CUDA and the emulator's checker reserve far more than they touch.
    """

    seconds: float = 30.0
    memory: int = 4 << 30
    file_bytes: int = 1 << 30
    output: int = 1 << 20


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child ended.

    Attributes:
        returncode: Exit status, negative for a signal (as in `subprocess`).
        timed_out: Killed for its time limit.
        out_of_memory: Killed for its memory limit.
        output_cut: It printed more than the limit; the rest was dropped.
        stdout, stderr: Captured output.
        seconds: Wall time.
    """

    returncode: int
    timed_out: bool
    out_of_memory: bool
    output_cut: bool
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it exited with status 0 within its limits."""
        return self.returncode == 0 and not self.timed_out and not self.out_of_memory


async def run_child(
    argv: Sequence[str],
    *,
    limits: Limits = DEFAULT_LIMITS,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> ChildResult:
    """Run one command to its end or to a limit.

    Args:
        argv: Program and arguments; no shell.
        limits: What it may use.
        cwd: Working folder.
        env: Whole environment; `None` passes ours on.
        stdin: Its standard input; `None` is empty.

    Raises:
        FileNotFoundError: The program does not exist.
    """
    child = await start_child(argv, limits=limits, cwd=cwd, env=env, piped=stdin is not None)
    return await child.finish(limits, stdin)


@dataclass(slots=True)
class Child:
    """A child that was started, before anybody waits for its end."""

    process: asyncio.subprocess.Process
    started: float

    async def finish(self, limits: Limits, stdin: bytes | None = None) -> ChildResult:
        """Wait for its end or for a limit, counted from now; then its whole group is gone."""
        process = self.process
        begun = time.monotonic()
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            asyncio.create_task(_read_capped(process.stdout, limits.output)),
            asyncio.create_task(_read_capped(process.stderr, limits.output)),
        ]
        feeder = asyncio.create_task(_feed(process, stdin))
        memory_watch = asyncio.create_task(_watch_memory(process.pid, limits.memory))
        waiter = asyncio.create_task(process.wait())
        timed_out = out_of_memory = False
        try:
            done, _ = await asyncio.wait(
                {waiter, memory_watch}, timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED
            )
            timed_out = not done
            out_of_memory = memory_watch in done and waiter not in done
        finally:
            _kill_group(process.pid)
            memory_watch.cancel()
            feeder.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(waiter)
        # A grandchild that left the group may hold the pipes open: what it prints is not waited for.
        finished, pending = await asyncio.wait(readers, timeout=2.0)
        for task in pending:
            task.cancel()
        out, err = (reader.result() if reader in finished else (b"", True) for reader in readers)
        return ChildResult(
            returncode=process.returncode if process.returncode is not None else -signal.SIGKILL,
            timed_out=timed_out,
            out_of_memory=out_of_memory,
            output_cut=out[1] or err[1],
            stdout=out[0],
            stderr=err[0],
            seconds=time.monotonic() - begun,
        )

    async def stop(self) -> None:
        """End it and its whole group, whatever it does."""
        _kill_group(self.process.pid)
        await self.process.wait()


async def start_child(
    argv: Sequence[str],
    *,
    limits: Limits = DEFAULT_LIMITS,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    piped: bool = False,
) -> Child:
    """Start a command in a group of its own; with `piped`, its standard input is ours to write.

    Raises:
        FileNotFoundError: The program does not exist.
    """
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE if piped else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=dict(env) if env is not None else None,
        start_new_session=True,
    )
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    return Child(process, started)


async def _feed(process: asyncio.subprocess.Process, data: bytes | None) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data or b"")
        await process.stdin.drain()
    process.stdin.close()


async def _read_capped(stream: asyncio.StreamReader, limit: int) -> tuple[bytes, bool]:
    kept = bytearray()
    cut = False
    while chunk := await stream.read(1 << 16):
        room = limit - len(kept)
        kept += chunk[:room]
        cut = cut or len(chunk) > room
    return bytes(kept), cut


async def _watch_memory(group: int, limit: int) -> None:
    """Return once the group's resident memory is above `limit`."""
    pause = _POLL_SECONDS
    while True:
        await asyncio.sleep(pause)
        if _resident(group) > limit:
            return
        pause = min(_POLL_MOST, pause * _POLL_GROWTH)


def _resident(group: int) -> int:
    total = 0
    for pid in _descendants(group):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm") as file:
            total += int(file.read().split()[1]) * _PAGE
    return total


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        if len(found) >= _MOST_PROCESSES:
            break  # a fork bomb must not keep us looking
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with contextlib.suppress(OSError, ValueError), open(f"/proc/{parent}/task/{task}/children") as file:
                    found.extend(int(child) for child in file.read().split())
    return found


def _kill_group(pid: int) -> None:
    # Found before the group dies, since they lose their parent with it; killed after it, since in a sandbox the
    # group's death is the death of all of them, however fast they multiply.
    others = _descendants(pid)[1:]
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for victim in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(victim, signal.SIGKILL)
