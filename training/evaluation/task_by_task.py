"""A front before a verifier that times few tasks at once: what a task is timed on is hundreds of megabytes."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict

from cudaperf_agent.cuda.base import CandidateVerifier
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.tasks.model import Task


class TaskByTask:
    """Lets measurements of at most `tasks` tasks through at a time, all that wait for one task together.

    The verifier keeps the contents of as many tasks at hand; a task more would have them made again for every
    candidate. Everything else goes straight through.

    Args:
        verifier: Who judges; not closed with this.
        tasks: How many it keeps at hand.
    """

    def __init__(self, verifier: CandidateVerifier, tasks: int) -> None:
        self._verifier = verifier
        self._tasks = tasks
        self._active: Counter[str] = Counter()
        self._waiting: OrderedDict[str, list[asyncio.Future[None]]] = OrderedDict()

    @property
    def backend(self) -> str:
        """The verifier's."""
        return self._verifier.backend

    async def compile(self, task: Task, source: str) -> Verdict:
        """As the verifier does it."""
        return await self._verifier.compile(task, source)

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        """As the verifier does it."""
        return await self._verifier.test(task, source, hidden=hidden)

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        """As the verifier does it, when it is the task's turn."""
        await self._enter(task.digest)
        try:
            return await self._verifier.measure(task, source, verdict)
        finally:
            self._leave(task.digest)

    async def aclose(self) -> None:
        """Nothing to release: the verifier is the caller's."""

    async def _enter(self, digest: str) -> None:
        if digest in self._active or len(self._active) < self._tasks:
            self._active[digest] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(digest, []).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(digest)
            raise

    def _leave(self, digest: str) -> None:
        self._active[digest] -= 1
        if self._active[digest]:
            return
        del self._active[digest]
        while self._waiting and len(self._active) < self._tasks:
            following, turns = self._waiting.popitem(last=False)
            granted = [turn for turn in turns if not turn.done()]
            self._active[following] += len(granted)
            for turn in granted:
                turn.set_result(None)
            if not granted:
                del self._active[following]
