"""Tasks made ready ahead of an evaluation, in a thread with a loop of its own: a starting engine blocks the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cudaperf_agent.errors import CudaPerfError
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.model import Task
from training.beside_engine import judging_jobs


@dataclass(slots=True)
class TasksAhead:
    """Ready tasks by what they were made of; what was refused is left out, and refused again when it is asked for.

    Args:
        wrap: The sandbox.
    """

    wrap: Wrap
    _ready: dict[str, Task] = field(default_factory=dict)
    _thread: threading.Thread | None = None

    def start(self, loaders: Iterable[Callable[[], Task]], say: Callable[[str], None] = lambda text: None) -> None:
        """Begin with the tasks that the loaders give, as many at once as there are processors."""
        loading = list(loaders)

        def work() -> None:
            asyncio.run(self._all(loading))
            say(f"{len(self._ready)} of {len(loading)} tasks are ready")

        self._thread = threading.Thread(target=work, name="cudaperf-tasks-ahead", daemon=True)
        self._thread.start()

    async def prepared(self, task: Task) -> Task:
        """The task made ready: as found ahead, or made now. Waits for the work ahead to end.

        Raises:
            InputRefused: As `tasks.prepare.prepare`.
        """
        from cudaperf_agent.tasks.prepare import prepare

        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        if task.digest not in self._ready:
            self._ready[task.digest] = await prepare(task, wrap=self.wrap)
        return self._ready[task.digest]

    async def _all(self, loaders: Iterable[Callable[[], Task]]) -> None:
        def keep(number: int, loaded: Task, ready: Task) -> None:
            self._ready[loaded.digest] = ready

        await make_ready(loaders, self.wrap, keep, lambda number, error: None)


async def make_ready(
    loaders: Iterable[Callable[[], Task]],
    wrap: Wrap,
    ready: Callable[[int, Task, Task], None],
    refused: Callable[[int, CudaPerfError], None],
) -> None:
    """Understand tasks and run their C under the sanitizers, as many at once as there are processors.

    Args:
        loaders: What gives each task.
        wrap: The sandbox.
        ready: Called with a loader's number, its task, and that made ready.
        refused: Called with the number of a loader whose task is refused, and why.
    """
    from cudaperf_agent.cuda import emulator
    from cudaperf_agent.tasks.prepare import prepare

    free = asyncio.Semaphore(judging_jobs())

    async def one(number: int, load: Callable[[], Task]) -> None:
        async with free:
            try:
                task = await asyncio.to_thread(load)
                ready(number, task, await prepare(task, wrap=wrap))
            except CudaPerfError as error:
                refused(number, error)

    # Built once, by whoever comes first: the first candidate would wait for it.
    await asyncio.gather(asyncio.to_thread(emulator.runtime_library), *(one(n, load) for n, load in enumerate(loaders)))
