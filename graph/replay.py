"""The event stream of a stored run, rebuilt from the store.

It is what the live run told, but for tokens, and for the beginning of a step that never finished.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator, Sequence

from cudaperf_agent.store.projection import FINISH, HIDDEN_NODES
from cudaperf_agent.store.records import RunStatus, Step, Trajectory
from cudaperf_agent.store.repository import Store
from graph.events import Event
from graph.narration import opening_events, run_finished, run_started, step_events, trajectory_events
from graph.results import choose

_NODE_ORDER = {
    name: place for place, name in enumerate(("generate", "compile", "test", "measure", "assess", "feedback", FINISH))
}


def replay_events(store: Store, run_id: str) -> Iterator[Event]:
    """All events of a run so far, in order of time.

    Args:
        store: Where the run is.
        run_id: Id, unique prefix or ``latest``.

    Raises:
        StoreError: There is no such run.
    """
    run = store.get_run(run_id).summary
    trajectories = store.trajectories(run.id)
    steps = store.steps(run.id)
    yield run_started(run, run.created)
    stories = [_story(t, [s for s in steps if s.trajectory == t.number]) for t in trajectories]
    yield from heapq.merge(*stories, key=lambda event: event.at)
    if run.finished is not None and run.status is not RunStatus.RUNNING:
        best = choose(trajectories, store.attempts(run.id))
        verdict = best.attempt.hidden_verdict if best else None
        yield run_finished(run, verdict.to_dict() if verdict else None, run.finished)


async def follow_events(store: Store, run_id: str, *, poll_seconds: float = 0.5) -> AsyncIterator[Event]:
    """As `replay_events`, then what a process at work on the run adds, until the run ends or nobody works on it.

    Args:
        store: Where the run is.
        run_id: Id, unique prefix or ``latest``.
        poll_seconds: Between two looks.

    Raises:
        StoreError: There is no such run.
    """
    found = await asyncio.to_thread(store.find_run, run_id)
    seen: set[tuple[object, ...]] = set()
    while True:
        at_work = await asyncio.to_thread(store.is_claimed, found)
        events = await asyncio.to_thread(lambda: list(replay_events(store, found)))
        for event in events:
            key = (event.kind, event.trajectory, event.turn, event.node, event.at)
            if key not in seen:
                seen.add(key)
                yield event
        if not at_work:
            return
        await asyncio.sleep(poll_seconds)


def _story(trajectory: Trajectory, steps: Sequence[Step]) -> list[Event]:
    """The events of one trajectory in logical order, which is also that of time."""
    hidden = sorted((s for s in steps if s.node in HIDDEN_NODES), key=lambda s: s.started)
    usual = sorted((s for s in steps if s.node not in HIDDEN_NODES), key=lambda s: (s.turn, _NODE_ORDER[s.node]))
    events: list[Event] = []
    for step in usual:
        if step.node == FINISH:
            events += _opening(step)
            for inner in hidden:
                events += [*_opening(inner), *step_events(inner)]
            events += step_events(step)
        else:
            events += [*_opening(step), *step_events(step)]
    if not any(s.node == FINISH for s in usual):
        for inner in hidden:
            events += [*_opening(inner), *step_events(inner)]
    if trajectory.finished is not None and trajectory.status is not RunStatus.RUNNING:
        events += trajectory_events(trajectory)
    return events


def _opening(step: Step) -> list[Event]:
    messages = step.payload.get("messages") or []
    return opening_events(step.run, step.trajectory, step.turn, step.node, step.started, {"messages": messages})
