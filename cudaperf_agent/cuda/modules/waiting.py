"""Python processes that wait for a candidate with torch imported and their CUDA context made; each runs one plan.

Most of a verdict's time goes into starting. Here that happens before there is a candidate; what it meets is what it
meets in a fresh process: a sandbox, a folder and a process namespace of its own, and nothing of those before. Whoever
gets no process from here starts one as ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.modules.python_child import prepare_python, python_command
from cudaperf_agent.execution.child import Child, ChildResult, Limits
from cudaperf_agent.execution.sandbox import Sandbox
from cudaperf_agent.execution.standby import WaitingCommand, remove_waiting, start_ready

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaitingConfig:
    """Numbers of the pool.

    Attributes:
        waiting: Processes that are kept ready, two per verdict; fewer where there are fewer processors.
        start_seconds: A process that is not ready by then is given up.
        failures: Processes in a row that may fail to start before no more are started.
    """

    waiting: int = 4
    start_seconds: float = 60.0
    failures: int = 3


WAITING = WaitingConfig()


@dataclass(slots=True)
class WaitingPython:
    """One process that is ready, and its folder, which is to hold the request."""

    child: Child
    folder: Path

    async def answer(self, limits: Limits) -> ChildResult:
        """Let it answer the request of its folder; then it has ended."""
        return await self.child.finish(limits, b"\n")

    async def discard(self) -> None:
        """End it, if it still runs, and remove its folder."""
        await remove_waiting(self.child, self.folder)


@dataclass(slots=True)
class WaitingPythons:
    """Keeps processes ready. Nothing is started before it is asked for.

    Args:
        sandbox: What confines each.
        env: More variables of each.
        limits: Of each, but for time.
        starting: Held while one starts, so that nothing is timed meanwhile.
        device: What it makes ready.
        python: The interpreter; this one where `None`.
        config: Numbers.
    """

    sandbox: Sandbox
    env: Mapping[str, str]
    limits: Limits
    starting: AbstractAsyncContextManager[Any]
    device: str = "cuda:0"
    python: str | None = None
    config: WaitingConfig = WAITING
    _ready: list[asyncio.Task[WaitingPython]] = field(default_factory=list)
    _claimed: int = 0
    _failed: int = 0
    _closed: bool = False

    def fill(self) -> None:
        """Begin to start as many as are to wait."""
        self._start_until(min(self.config.waiting, max(2, len(os.sched_getaffinity(0)) // 2)))

    def _start_until(self, wanted: int) -> None:
        if self._closed or self._failed >= self.config.failures:
            return
        while len(self._ready) < wanted:
            self._ready.append(asyncio.get_running_loop().create_task(self._start()))

    async def wait(self) -> bool:
        """Until none is being started any more; whether any is ready."""
        self.fill()
        if self._ready:
            await asyncio.wait(self._ready)
        return any(_succeeded(task) for task in self._ready)

    async def take(self, count: int) -> list[WaitingPython]:
        """So many for one job each, ready or soon; none at all where that cannot be had.

        Where more is asked for than waits, a fresh process costs less than several of these. The caller must discard
        them in the end, and `fill` then: what starts meanwhile would slow them down.
        """
        if len(self._ready) - self._claimed < count:
            return []
        taken: list[WaitingPython] = []
        self._claimed += count
        try:
            while len(taken) < count:
                self._start_until(self._claimed)
                if not self._ready:
                    break
                await asyncio.wait(self._ready, return_when=asyncio.FIRST_COMPLETED)
                task = next((t for t in self._ready if t.done()), None)
                if task is None:
                    continue  # another caller was faster
                self._ready.remove(task)
                if not _succeeded(task):
                    self._failure(task)
                    continue
                worker = task.result()
                if worker.child.process.returncode is None:
                    self._failed = 0
                    self._claimed -= 1
                    taken.append(worker)
                else:
                    await worker.discard()
        except BaseException:
            await _discarded(taken)
            raise
        finally:
            self._claimed -= count - len(taken)
        if len(taken) == count:
            return taken
        await _discarded(taken)
        return []

    async def aclose(self) -> None:
        """End all that wait."""
        self._closed = True
        tasks, self._ready = self._ready, []
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(found, WaitingPython):
                await found.discard()

    def _failure(self, task: asyncio.Task[WaitingPython]) -> None:
        self._failed += 1
        if self._failed == self.config.failures:
            _LOG.warning("No Python process can wait for candidates: each starts anew (%s).", task.exception())

    async def _start(self) -> WaitingPython:
        async def command(folder: Path) -> WaitingCommand:
            await prepare_python(self.python)
            request = folder / "waiting.json"
            request.write_text(json.dumps({"device": self.device}))
            request.chmod(0o644)
            made = python_command("waiting", folder, sandbox=self.sandbox, python=self.python)
            return WaitingCommand(made.argv, {**made.env, **self.env})

        ready = await start_ready(
            command,
            prefix="cudaperf-candidate-",
            starting=self.starting,
            seconds=self.config.start_seconds,
            failure="it is not ready",
            limits=self.limits,
        )
        return WaitingPython(ready.child, ready.folder)


def _succeeded(task: asyncio.Task[WaitingPython]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def _discarded(workers: list[WaitingPython]) -> None:
    for worker in workers:
        await worker.discard()
