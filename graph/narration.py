"""The events that stored things tell: the same functions serve a live run and its replay, so both tell one story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cudaperf_agent.store.projection import FINISH, HIDDEN_NODES, VERDICT_NODES
from cudaperf_agent.store.records import RunStatus, RunSummary, Step, Trajectory
from graph.events import Event, EventKind


def run_started(run: RunSummary, at: float, *, resumed: bool = False) -> Event:
    """The first event of a run, or of its resumption."""
    data = {
        "task": run.task_name,
        "path": run.task_path,
        "policy": run.policy,
        "backend": run.backend,
        "turns": run.turns,
        "trajectories": run.trajectories,
        "resumed": resumed,
    }
    return Event(EventKind.RUN_STARTED, run.id, at, data=data)


def run_finished(run: RunSummary, verdict: dict[str, Any] | None, at: float) -> Event:
    """The last event of a run; `verdict` is the chosen attempt's on the hidden cases."""
    best = None
    if run.best_turn is not None:
        best = {"trajectory": run.best_trajectory, "turn": run.best_turn}
    data = {"status": run.status.value, "reason": run.reason, "best": best, "verdict": verdict}
    return Event(EventKind.RUN_FINISHED, run.id, at, data=data)


def opening_events(
    run: str, trajectory: int, turn: int, node: str, at: float, opening: Mapping[str, Any]
) -> list[Event]:
    """What is told when a step begins."""
    events = [Event(EventKind.NODE_STARTED, run, at, trajectory, turn, node)]
    if node == "generate":
        data = {"messages": opening.get("messages", [])}
        events.append(Event(EventKind.TURN_STARTED, run, at, trajectory, turn, node, data))
    return events


def step_events(step: Step) -> list[Event]:
    """What is told when a step has finished."""

    def event(kind: EventKind, data: dict[str, Any]) -> Event:
        return Event(kind, step.run, step.finished, step.trajectory, step.turn, step.node, data)

    payload = step.payload
    events = []
    if step.node == "generate":
        names = ("source", "text", "strategy", "model", "declined", "finish_reason", "usage")
        events.append(event(EventKind.PROPOSAL, {name: payload.get(name) for name in names}))
    hidden = step.node in HIDDEN_NODES
    if step.node in ("generate", *VERDICT_NODES, *HIDDEN_NODES) and payload.get("verdict"):
        events.append(event(EventKind.VERDICT, {"verdict": payload["verdict"], "hidden": hidden}))
    if hidden and payload["verdict"]["status"] != "correct":
        status, message = payload["verdict"]["status"], payload["verdict"]["message"]
        text = f"turn {step.turn + 1} passed the visible cases but not the hidden ones ({status}): {message}"
        events.append(event(EventKind.NOTICE, {"message": text.removesuffix(": "), "level": "warning"}))
    if step.node == "assess":
        reward = payload.get("reward") or {}
        parts = {name: reward.get(name) for name in ("total", "verifiable", "structural")}
        data = {**parts, "features": payload.get("features"), "hints": payload.get("hints"), "reward": reward or None}
        events.append(event(EventKind.REWARD, data))
    if step.node == "feedback":
        events.append(event(EventKind.FEEDBACK, {"text": payload["feedback"]}))
    if step.node == FINISH and payload["first_choice"] != payload["best_turn"]:
        events.append(event(EventKind.NOTICE, {"message": _second_choice(payload), "level": "warning"}))
    events.append(event(EventKind.NODE_FINISHED, {"seconds": step.finished - step.started}))
    return events


def trajectory_events(trajectory: Trajectory) -> list[Event]:
    """What is told when a trajectory has ended, in whatever way."""
    at = trajectory.finished if trajectory.finished is not None else trajectory.started
    events = []
    if trajectory.status is RunStatus.ERROR and trajectory.error:
        data = {**trajectory.error, "level": "error"}
        events.append(Event(EventKind.NOTICE, trajectory.run, at, trajectory.number, data=data))
    data = {
        "status": trajectory.status.value,
        "reason": trajectory.reason,
        "best_turn": trajectory.best_turn,
        "first_choice": trajectory.first_choice,
    }
    events.append(Event(EventKind.TRAJECTORY_FINISHED, trajectory.run, at, trajectory.number, data=data))
    return events


def _second_choice(payload: Mapping[str, Any]) -> str:
    if payload["best_turn"] is None:
        return "no attempt passed the hidden cases"
    return (
        f"turn {payload['first_choice'] + 1} was the first choice and failed the hidden cases; "
        f"turn {payload['best_turn'] + 1} stands instead"
    )
