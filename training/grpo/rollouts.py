"""Rollouts of one step: every task's trajectories through the same graph that users run, all at once on one loop."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.store.records import RunStatus, StoredAttempt, Trajectory
from cudaperf_agent.tasks.model import Task
from graph.config import GraphConfig
from graph.context import Deps
from graph.results import RunResult
from graph.runner import run_task
from training.grpo.branching import shared_history_turns
from training.grpo.config import RolloutSection
from training.grpo.rows import Turn, turn_of

ORIGIN = "grpo"
"""Origin of these runs in the store and in `cudaperf runs`."""

_SEEDS = 2**31
_CONCURRENCY = 4096


@dataclass(frozen=True, slots=True)
class Rollout:
    """What one step's rollouts came to.

    Attributes:
        turns: Every turn that can be learned from, of all tasks.
        attempts: As stored, by task.
        trajectories: How each ended, by task.
        runs: Ids of the runs in the store, by task.
        errors: Messages of trajectories that failed because of us or the machine.
    """

    turns: tuple[Turn, ...]
    attempts: Mapping[str, tuple[StoredAttempt, ...]]
    trajectories: Mapping[str, tuple[Trajectory, ...]]
    runs: Mapping[str, tuple[str, ...]]
    errors: tuple[str, ...]


async def roll_out(
    tasks: Mapping[str, Task], names: Sequence[str], deps: Deps, section: RolloutSection, seed: int
) -> Rollout:
    """Draw `section.trajectories` trajectories for each named task.

    Args:
        tasks: By name.
        names: Of this step; a name may come twice and is then drawn twice, under a name of its own.
        deps: The graph's dependencies.
        section: Turns, trajectories, grouping.
        seed: Of this step: the same seed and the same weights give the same rollouts.

    Raises:
        StoreError: The store fails.
    """
    labels = _labels(names)
    drawn = await asyncio.gather(
        *(_of_task(tasks[name], label, deps, section, task_seed(seed, label)) for name, label in labels)
    )
    turns: list[Turn] = []
    errors: list[str] = []
    for (_, label), results in zip(labels, drawn, strict=True):
        turns += _turns(label, results, section)
        errors += [t.reason for r in results for t in r.trajectories if t.status is RunStatus.ERROR]
    return Rollout(
        tuple(turns),
        {
            label: tuple(a for r in results for a in r.attempts)
            for (_, label), results in zip(labels, drawn, strict=True)
        },
        {label: results[-1].trajectories for (_, label), results in zip(labels, drawn, strict=True)},
        {label: tuple(r.run for r in results) for (_, label), results in zip(labels, drawn, strict=True)},
        tuple(errors),
    )


def task_seed(seed: int, label: str) -> int:
    """Seed of one task's first trajectory: depends on step and task, not on the order of tasks."""
    digest = hashlib.sha256(f"{seed} {label}".encode()).digest()
    return int.from_bytes(digest[:4], "little") % _SEEDS


def graph_config(section: RolloutSection, seed: int) -> GraphConfig:
    """How the graph is run in training: a fixed horizon, no hidden cases, no checkpoints (the store resumes)."""
    return GraphConfig(
        turns=section.turns,
        trajectories=section.trajectories,
        concurrency=_CONCURRENCY,
        seed=seed,
        fixed_horizon=True,
        hidden=False,
        checkpointing=False,
    )


async def _of_task(task: Task, label: str, deps: Deps, section: RolloutSection, seed: int) -> list[RunResult]:
    named = replace(task, path=label)
    config = graph_config(section, seed)
    if section.grouping == "same_history":
        return await shared_history_turns(named, deps, config, ORIGIN)
    return [await run_task(named, deps, config, origin=ORIGIN)]


def _turns(label: str, results: Sequence[RunResult], section: RolloutSection) -> list[Turn]:
    if section.grouping == "same_history":
        # Each run adds one turn; what it shares with the others is the first one's.
        attempts = [a for turn, result in enumerate(results) for a in result.attempts if a.turn == turn]
    else:
        attempts = [a for result in results for a in result.attempts]
    return [turn for turn in (turn_of(label, a) for a in attempts) if turn is not None]


def _labels(names: Sequence[str]) -> list[tuple[str, str]]:
    seen: dict[str, int] = {}
    labels = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        labels.append((name, name if seen[name] == 1 else f"{name}#{seen[name]}"))
    return labels
