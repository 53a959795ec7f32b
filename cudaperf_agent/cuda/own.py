"""Timing of kernels that our own generator made: many in one process, on few contents, without the host's side.

Such code does not cheat, so what protects against cheats is left out where it costs time: processes of their own,
contents that are used once, the drop-in. What protects against mistakes stays: poisoned outputs, an emptied L2, and
every output checked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from cudaperf_agent.cuda.measure import Stopwatch
from cudaperf_agent.cuda.timing import Checker, Contents, Timed, TimedRun, TimingConfig
from cudaperf_agent.tasks.model import Task


@dataclass(frozen=True, slots=True)
class OwnConfig:
    """Numbers.

    Attributes:
        contents: Content sets of a task.
        samples, warmups: Calls of a kernel.
        kernels: Of one process: each library brings a CUDA runtime of its own, and what they hold is given back only
            with the process.
    """

    contents: int = 3
    samples: int = 15
    warmups: int = 2
    kernels: int = 40

    def timing(self, config: TimingConfig) -> TimingConfig:
        """`config` with these numbers in it."""
        return replace(
            config,
            contents=self.contents,
            fewest_contents=min(self.contents, config.fewest_contents),
            samples=self.samples,
            warmups=self.warmups,
            processes=1,
            null_calls=False,
        )


@dataclass(frozen=True, slots=True)
class _Pending:
    timed: Timed
    checker: Checker


class OwnTimer:
    """Times kernels of one task, one after the other.

    Args:
        watch: What times on this machine.
        task: The task.
        contents: What they are called on.
        config: Numbers.
    """

    def __init__(self, watch: Stopwatch, task: Task, contents: Contents, config: OwnConfig) -> None:
        self._watch = watch
        self._task = task
        self._contents = contents
        self._config = config
        self._run: TimedRun | None = None
        self._served = 0
        self._closed = False

    async def time(self, library: Path) -> Timed:
        """The device time of one kernel."""
        async with self._watch.turn(cpu=False):
            pending = await asyncio.to_thread(self._time, library)
        return await asyncio.to_thread(pending.checker.checked, pending.timed)

    async def aclose(self) -> None:
        """End the process, if there is one; a kernel that still waits for its turn has one to itself."""
        self._closed = True
        async with self._watch.turn(cpu=False):
            await asyncio.to_thread(self._stop)

    def _time(self, library: Path) -> _Pending:
        if self._run is None or self._served >= self._config.kernels:
            self._stop()
            self._run = self._watch.run(library, "device", self._task, self._contents)
            self._run.stage()
        else:
            self._run.reload(library)
        run = self._run
        self._served += 1
        timed = run.calls()
        if timed.timing is None or self._closed:
            self._stop()  # whatever it did to the process, the next kernel has another one
        return _Pending(run.with_phases(timed), run.checker)

    def _stop(self) -> None:
        if self._run is not None:
            self._run.close()
        self._run, self._served = None, 0
