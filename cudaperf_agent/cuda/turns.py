"""Turns at a machine: many at once for most work, and nobody else for what is timed.

Work enters through gates. For timing they are shut: who is inside finishes, who queues waits. Stopping costs the most,
so that turns that are waited for follow each other before the gates open again; and the gates stay open for a while
before they are shut, so that what makes candidates ready for timing is not stopped by every one that is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType


@dataclass(frozen=True, slots=True)
class TurnsConfig:
    """Numbers.

    Attributes:
        open_seconds: Gates that lead to the device are shut for timing once nobody is inside or queues there, and at
            the latest this long after a turn was asked for.
        phase_seconds: Turns follow each other for this long while somebody else queues.
    """

    open_seconds: float = 1.5
    phase_seconds: float = 6.0


class Gate:
    """Lets so many in at once, in the order in which they came, and nobody while it is shut. `async with` is inside.

    Args:
        permits: So many.
    """

    def __init__(self, permits: int) -> None:
        self._permits = permits
        self._inside = 0
        self._shut = False
        self._queue: deque[asyncio.Future[None]] = deque()
        self._changed = asyncio.Event()

    @property
    def inside(self) -> int:
        """How many are past it."""
        return self._inside

    @property
    def queued(self) -> bool:
        """Whether somebody waits to be let in."""
        return any(not waiting.done() for waiting in self._queue)

    @property
    def idle(self) -> bool:
        """Whether nobody is inside or waits."""
        return not self._inside and not self.queued

    def shut(self) -> None:
        """Let nobody in from now on."""
        self._shut = True

    def open(self) -> None:
        """Let in who waits."""
        self._shut = False
        self._admit()

    async def empty(self) -> None:
        """Until nobody is inside."""
        while self._inside:
            await self._change()

    async def at_rest(self) -> None:
        """Until nobody is inside or waits."""
        while not self.idle:
            await self._change()

    async def __aenter__(self) -> None:
        if not self._shut and not self.queued and self._inside < self._permits:
            self._inside += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            else:
                self._note()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        self._admit()

    def _admit(self) -> None:
        while self._queue and not self._shut and self._inside < self._permits:
            turn = self._queue.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
        self._note()

    def _note(self) -> None:
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


@dataclass(slots=True, eq=False)
class _Turn:
    cpu: bool
    asked: float
    granted: asyncio.Future[None]
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Turns:
    """Gives the device, or the whole machine, to one at a time.

    Turns that need the device alone come first, but for one that has waited for a phase: those that need the processors
    too wait for whoever computes.

    Args:
        device: Gates to the device, which every turn shuts.
        processors: Gates to the processors, shut for turns that need them as well.
        config: Numbers.
    """

    def __init__(self, device: Sequence[Gate], processors: Sequence[Gate], config: TurnsConfig | None = None) -> None:
        self._device = tuple(device)
        self._processors = tuple(processors)
        self._config = config or TurnsConfig()
        self._queue: list[_Turn] = []
        self._conductor: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def alone(self, *, cpu: bool = True) -> AsyncIterator[None]:
        """Nobody is past the gates to the device meanwhile, and with `cpu` nobody past those to the processors."""
        loop = asyncio.get_running_loop()
        turn = _Turn(cpu, loop.time(), loop.create_future())
        self._queue.append(turn)
        if self._conductor is None or self._conductor.done():
            self._conductor = loop.create_task(self._conduct())
        try:
            await turn.granted
            yield
        finally:
            if turn in self._queue:
                self._queue.remove(turn)
            turn.over.set()

    async def _conduct(self) -> None:
        while self._queue:
            with suppress(TimeoutError):
                await asyncio.wait_for(_at_rest(self._device), self._config.open_seconds)
            try:
                await self._phase()
            finally:
                for gate in (*self._device, *self._processors):
                    gate.open()

    async def _phase(self) -> None:
        """Turns one after the other, until there is none, or until others have waited for long."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._config.phase_seconds
        for gate in self._device:
            gate.shut()
        for gate in self._device:
            await gate.empty()
        while turn := self._next():
            if turn.cpu:
                for gate in self._processors:
                    await gate.empty()
            if not turn.granted.done():
                turn.granted.set_result(None)
                await turn.over.wait()
            if clock() >= until and any(g.queued for g in (*self._device, *self._processors)):
                return

    def _next(self) -> _Turn | None:
        """The next turn; where one waits for the processors, nobody else starts to use them."""
        if any(turn.cpu for turn in self._queue):
            for gate in self._processors:
                gate.shut()
        late = asyncio.get_running_loop().time() - self._config.phase_seconds
        chosen = min(self._queue, key=lambda turn: turn.cpu and turn.asked > late, default=None)
        if chosen is not None:
            self._queue.remove(chosen)
        return chosen


async def _at_rest(gates: Sequence[Gate]) -> None:
    while not all(gate.idle for gate in gates):
        for gate in gates:
            await gate.at_rest()
