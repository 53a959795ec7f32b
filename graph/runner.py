"""Runs trajectories of a task through the graph, all at once on one event loop, and resumes them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from cudaperf_agent.errors import CudaPerfError
from cudaperf_agent.store.records import Run, RunEnd, RunStatus, Trajectory
from cudaperf_agent.tasks.model import Task
from graph.batching import BatchingPolicy, BatchPolicy
from graph.build import Compiled, build, invocation, thread_id
from graph.checkpoints import checkpoint_file, open_checkpoints
from graph.config import GraphConfig
from graph.context import Context, Deps
from graph.events import Event
from graph.narration import run_finished, run_started, trajectory_events
from graph.results import RunResult, choose, conclude, load_result
from graph.state import initial_state
from graph.writer import StoreWriter, shared_writer

OnEvent = Callable[[Event], None]


async def run_task(
    task: Task,
    deps: Deps,
    config: GraphConfig | None = None,
    *,
    on_event: OnEvent | None = None,
    run_id: str | None = None,
    origin: str = "translate",
    control: RunControl | None = None,
) -> RunResult:
    """Run a task's trajectories to their ends.

    Args:
        task: What to translate.
        deps: Policy, verifier, store and so on.
        config: Turns, trajectories, …
        on_event: Called on the event loop with every event; it must be quick.
        run_id: Id to use; a new one if left out.
        origin: Who asks, for listings.
        control: Its ``request_drain()`` ends every trajectory after the node at work and leaves it resumable.

    Raises:
        StoreError: The store or the checkpoints fail. What fails within a trajectory is its result, not an exception.
    """
    config = config or GraphConfig()
    create = partial(
        deps.store.create_run,
        task,
        policy=deps.policy.name,
        backend=deps.verifier.backend,
        config=config.to_dict(),
        trajectories=config.trajectories,
        turns=config.turns,
        created=deps.clock(),
        origin=origin,
        run_id=run_id,
    )
    stored = await asyncio.to_thread(lambda: deps.store.get_run(create()))
    with deps.store.claim(stored.summary.id):
        return await _Drive(stored, deps, config, on_event, control).run(resumed=False)


async def resume_run(
    run_id: str, deps: Deps, *, on_event: OnEvent | None = None, control: RunControl | None = None
) -> RunResult:
    """Go on with a run that was killed, interrupted or stopped by an error; nothing that had finished is repeated.

    Args:
        run_id: Id, unique prefix or ``latest``. A run that has ended gives its stored result.
        deps: As for `run_task`; policy and verifier should be what the run began with.
        on_event: As for `run_task`; only new events come (`replay.replay_events` tells the earlier ones).
        control: As for `run_task`.

    Raises:
        StoreError: There is no such run, another process is at work on it, or the store or the checkpoints fail.
    """
    store = deps.store
    run = await asyncio.to_thread(store.get_run, run_id)
    with store.claim(run.summary.id):
        ended = await asyncio.to_thread(store.trajectories, run.summary.id)
        if run.summary.status.final and all(t.status.final for t in ended):
            return await asyncio.to_thread(load_result, store, run.summary.id)
        await asyncio.to_thread(store.reopen_run, run.summary.id)
        return await _Drive(run, deps, GraphConfig.from_dict(run.config), on_event, control).run(resumed=True)


@dataclass(frozen=True, slots=True)
class _Drive:
    stored: Run
    deps: Deps
    config: GraphConfig
    on_event: OnEvent | None
    control: RunControl | None

    @property
    def run_id(self) -> str:
        return self.stored.summary.id

    async def run(self, *, resumed: bool) -> RunResult:
        clock, store = self.deps.clock, self.deps.store
        self._emit(run_started(self.stored.summary, clock(), resumed=resumed))
        async with shared_writer(store) as writer:
            try:
                async with self._checkpoints() as saver:
                    await self._trajectories(writer, saver)
            except asyncio.CancelledError:
                store.end_run(self.run_id, RunEnd(RunStatus.INTERRUPTED, "cancelled", clock()))
                raise
            trajectories = await writer.call(lambda: store.trajectories(self.run_id))
            best = choose(trajectories, await writer.call(lambda: store.attempts(self.run_id)))
            end = conclude(trajectories, best, clock())
            await writer.call(lambda: store.end_run(self.run_id, end))
            result = await writer.call(lambda: load_result(store, self.run_id))
        verdict = result.best.attempt.hidden_verdict if result.best else None
        self._emit(run_finished(result.summary, verdict.to_dict() if verdict else None, end.finished))
        return result

    async def _trajectories(self, writer: StoreWriter, saver: BaseCheckpointSaver[str] | None) -> None:
        graph = build(saver)
        deps = self.deps
        if isinstance(deps.policy, BatchPolicy):
            front = BatchingPolicy(deps.policy, seconds=self.config.batch_seconds, size=self.config.batch_size)
            deps = replace(deps, policy=front)
        deadline = deps.clock() + self.config.seconds if self.config.seconds is not None else None
        stored = {t.number: t for t in await writer.call(lambda: deps.store.trajectories(self.run_id))}
        free = asyncio.Semaphore(self.config.concurrency)

        async def one(number: int) -> None:
            async with free:
                await self._trajectory(number, stored.get(number), graph, deps, writer, saver, deadline)

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self.config.trajectories):
                    if number not in stored or not stored[number].status.final:
                        group.create_task(one(number))
                    elif saver is not None:
                        await saver.adelete_thread(thread_id(self.run_id, number))
        except BaseExceptionGroup as failed:
            # Only the store or the checkpoints fail here, and one message about that is enough.
            raise failed.exceptions[0] from failed

    async def _trajectory(
        self,
        number: int,
        earlier: Trajectory | None,
        graph: Compiled,
        deps: Deps,
        writer: StoreWriter,
        saver: BaseCheckpointSaver[str] | None,
        deadline: float | None,
    ) -> None:
        store = deps.store
        finished = {}
        if earlier is None:
            record = Trajectory(self.run_id, number, self.config.seed + number, RunStatus.RUNNING, deps.clock())
        else:
            record = replace(earlier, status=RunStatus.RUNNING, finished=None, reason="", error=None)
            steps = await writer.call(lambda: store.steps(self.run_id, number))
            finished = {(step.turn, step.node): step for step in steps}
        await writer.call(lambda: store.save_trajectory(record))
        context = Context(
            deps, self.config, self.stored.task, self.run_id, number, record.seed, writer, deadline, finished
        )
        ended = await self._classified(record, graph, context, saver)
        await writer.call(lambda: store.save_trajectory(ended))
        for event in trajectory_events(ended):
            self._emit(event)
        if saver is not None and ended.status.final:
            await saver.adelete_thread(thread_id(self.run_id, number))

    async def _classified(
        self, record: Trajectory, graph: Compiled, context: Context, saver: BaseCheckpointSaver[str] | None
    ) -> Trajectory:
        """How the trajectory ended; the boundary at which an exception becomes a record."""
        clock = context.deps.clock
        try:
            outcome = await self._outcome(graph, context, saver)
        except GraphDrained as drained:
            return replace(record, status=RunStatus.INTERRUPTED, reason=str(drained), finished=clock())
        except CudaPerfError as error:
            return replace(
                record, status=RunStatus.ERROR, reason=error.message, error=error.as_dict(), finished=clock()
            )
        except Exception as error:  # noqa: BLE001 (a trajectory's failure must not end the others; it is recorded)
            message = f"{type(error).__name__}: {error}"
            told = {"kind": "internal", "message": message, "where": None, "hint": None}
            return replace(record, status=RunStatus.ERROR, reason=message, error=told, finished=clock())
        best = outcome["best_turn"]
        return replace(
            record,
            status=RunStatus.FAILED if best is None else RunStatus.CORRECT,
            reason=outcome["reason"],
            first_choice=outcome["first_choice"],
            best_turn=best,
            finished=clock(),
        )

    async def _outcome(
        self, graph: Compiled, context: Context, saver: BaseCheckpointSaver[str] | None
    ) -> dict[str, Any]:
        config: Any = invocation(self.run_id, context.trajectory, self.config.turns)
        start: Any = initial_state()
        state: Any = (await graph.aget_state(config)).values if saver is not None else {}
        if saver is not None and state.get("steps", 0) > len(context.finished):
            # A power cut took from the store what the checkpoint builds on: go by the store.
            await saver.adelete_thread(thread_id(self.run_id, context.trajectory))
        elif "outcome" in state:
            return dict(state["outcome"])
        elif state:
            start = None
        async for part in graph.astream(
            start,
            config,
            context=context,
            stream_mode=["custom", "values"],
            version="v2",
            durability="sync" if saver is not None else None,
            control=self.control,
        ):
            if part["type"] == "custom":
                self._emit(part["data"])
            else:
                state = part["data"]
        outcome: dict[str, Any] = state["outcome"]
        return outcome

    @contextlib.asynccontextmanager
    async def _checkpoints(self) -> AsyncIterator[BaseCheckpointSaver[str] | None]:
        if not self.config.checkpointing:
            yield None
            return
        async with open_checkpoints(checkpoint_file(self.deps.checkpoints)) as saver:
            yield saver

    def _emit(self, event: Event) -> None:
        if self.on_event is not None:
            self.on_event(event)
