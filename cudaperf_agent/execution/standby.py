"""Processes that wait for a job with their CUDA context already made, each used once and replaced.

A fresh process spends most of a second on its context. Here that happens before there is a job for it; what a job sees
is the same as in a fresh process: its own sandbox and folder, and nothing of the jobs before.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import DEFAULT_LIMITS, Child, ChildResult, Limits, start_child
from cudaperf_agent.execution.native import Wrap, child_environment, runner_program

_READY = b"ready\n"


@dataclass(frozen=True, slots=True)
class StandbyConfig:
    """Numbers of the pool.

    Attributes:
        waiting: Processes that are kept ready.
        starting: Processes that start at once.
        start_seconds: A process that is not ready by then is given up.
        failures: Processes in a row that may fail to start before the pool gives up.
    """

    waiting: int = 4
    starting: int = 8
    start_seconds: float = 30.0
    failures: int = 3


@dataclass(slots=True)
class WaitingWorker:
    """One process that is ready. See `native.Worker`."""

    child: Child
    folder: Path

    async def work(self, library: Path, request: Path, response: Path, limits: Limits) -> ChildResult:
        """Run the calls of `request` on a copy of `library`, which the sandbox could not know when it started."""
        copy = self.folder / "library.so"
        await asyncio.to_thread(_hand_in, library, copy, request)
        return await self.child.finish(limits, f"{request} {response} {copy}\n".encode())

    async def discard(self) -> None:
        """End it, if it still runs, and remove its folder."""
        await remove_waiting(self.child, self.folder)


@dataclass(slots=True)
class Standby:
    """Keeps workers ready. Nothing is started before the first is asked for.

    Args:
        wrap: The sandbox, with the GPU visible.
        env: Variables of every process on the GPU.
        config: Numbers.
        starting: Held while processes start, so that nothing is timed meanwhile.
    """

    wrap: Wrap | None
    env: Mapping[str, str]
    config: StandbyConfig
    starting: AbstractAsyncContextManager[Any]
    _ready: deque[asyncio.Task[WaitingWorker]] = field(default_factory=deque)
    _failed: int = 0

    async def take(self) -> WaitingWorker:
        """A worker for one job: the caller must give it one or discard it.

        Raises:
            BackendUnavailable: Several in a row did not start.
        """
        while True:
            while len(self._ready) <= self.config.waiting:
                self._ready.append(asyncio.get_running_loop().create_task(self._start()))
            # The first that is ready, not the first that was started.
            chosen = next((t for t in self._ready if t.done()), self._ready[0])
            self._ready.remove(chosen)
            try:
                worker = await asyncio.shield(chosen)
            except asyncio.CancelledError:
                self._ready.appendleft(chosen)
                raise
            except BackendUnavailable:
                self._failed += 1
                if self._failed >= self.config.failures:
                    raise
                continue
            if worker.child.process.returncode is None:
                self._failed = 0
                return worker
            await worker.discard()

    async def aclose(self) -> None:
        """End all that wait."""
        while self._ready:
            task = self._ready.popleft()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, BackendUnavailable):
                await (await task).discard()

    async def _start(self) -> WaitingWorker:
        async def command(folder: Path) -> WaitingCommand:
            argv = [str(await asyncio.to_thread(runner_program)), "--standby"]
            env = {**child_environment(folder), **self.env}
            return WaitingCommand(self.wrap(argv, folder) if self.wrap else argv, env)

        ready = await start_ready(
            command,
            prefix="cudaperf-call-",
            starting=self.starting,
            seconds=self.config.start_seconds,
            failure="no process starts on the GPU",
        )
        return WaitingWorker(ready.child, ready.folder)


@dataclass(frozen=True, slots=True)
class WaitingCommand:
    """A command line, in its sandbox, and its environment."""

    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReadyChild:
    """A process that said that it is ready, and the folder that it was started in."""

    child: Child
    folder: Path


async def start_ready(
    command: Callable[[Path], Awaitable[WaitingCommand]],
    *,
    prefix: str,
    starting: AbstractAsyncContextManager[Any],
    seconds: float,
    failure: str,
    limits: Limits = DEFAULT_LIMITS,
) -> ReadyChild:
    """Start a process in a new folder and wait until it says that it is ready; nothing is left of one that does not.

    Args:
        command: What it is, given its folder.
        prefix: Of the folder's name.
        starting: Held meanwhile.
        seconds: It must be ready by then.
        failure: Begins what is said where it is not.
        limits: Of the process.

    Raises:
        BackendUnavailable: It is not ready.
    """
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=prefix))
    child: Child | None = None
    try:
        wanted = await command(folder)
        async with starting:
            child = await start_child(wanted.argv, limits=limits, cwd=folder, env=wanted.env, piped=True)
            assert child.process.stdout is not None
            said = await asyncio.wait_for(child.process.stdout.readline(), seconds)
        if said == _READY:
            return ReadyChild(child, folder)
        result = await child.finish(Limits(seconds=1.0))
        trouble = result.stderr.decode("utf-8", "replace").strip()[-300:]
        raise BackendUnavailable(f"{failure}: {trouble or 'it said nothing'}")
    except TimeoutError:
        await remove_waiting(child, folder)
        raise BackendUnavailable(f"{failure} within {seconds:g} s") from None
    except BaseException:
        await remove_waiting(child, folder)
        raise


async def remove_waiting(child: Child | None, folder: Path) -> None:
    """End a process, if it still runs, and remove its folder."""
    if child is not None and child.process.returncode is None:
        await child.stop()
    await asyncio.to_thread(shutil.rmtree, folder, True)


def _hand_in(library: Path, copy: Path, request: Path) -> None:
    shutil.copyfile(library, copy)
    for file in (copy, request):
        file.chmod(0o644)  # the process may run as another user
