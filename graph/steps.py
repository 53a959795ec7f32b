"""Runs one step exactly once over all processes of a run, and tells the world about it.

A step is keyed (trajectory, turn, node). What an earlier process finished is taken from the store, not done again;
what finishes now is in the store before anything else happens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.store.records import Step, Tokens
from graph.context import Context
from graph.events import Event
from graph.narration import opening_events, step_events

Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What a node's work found: the JSON-ready payload and, of a completion, its tokens."""

    payload: dict[str, Any]
    tokens: Tokens | None = None


async def run_step(
    context: Context, emit: Emit, turn: int, node: str, work: Callable[[], Awaitable[Found]], **opening: Any
) -> dict[str, Any]:
    """The payload of the step: from the store if it is there, else from `work`.

    Args:
        context: Of the trajectory.
        emit: Takes the events of a step that is done now.
        turn: 0-based.
        node: Name of the step.
        work: Does it.
        opening: What the events at its start tell (``messages`` for ``generate``).
    """
    if earlier := context.finished.get((turn, node)):
        return earlier.payload
    started = context.deps.clock()
    for event in opening_events(context.run, context.trajectory, turn, node, started, opening):
        emit(event)
    found = await work()
    finished = max(started, context.deps.clock())
    step = Step(context.run, context.trajectory, turn, node, started, finished, found.payload, found.tokens)
    await context.writer.save(step)
    for event in step_events(step):
        emit(event)
    return found.payload
