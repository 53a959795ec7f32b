"""Groups whose members share one history: each turn, all samples branch from one trajectory of the turn before.

A branch is a run of its own in the store. The turns that it shares are copied there as finished steps, which the
graph does not do again; so the branch goes on exactly where the chosen trajectory stood.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

from cudaperf_agent.store.projection import FINISH
from cudaperf_agent.store.records import RunStatus, Step, Trajectory
from cudaperf_agent.tasks.model import Task
from graph.config import GraphConfig
from graph.context import Deps
from graph.results import RunResult
from graph.runner import resume_run, run_task


async def shared_history_turns(task: Task, deps: Deps, config: GraphConfig, origin: str) -> list[RunResult]:
    """One run per turn; run k's trajectories share turns 0 to k − 1 and differ in turn k.

    Args:
        task: What to translate.
        deps: The graph's dependencies.
        config: Of the whole; the k-th run has k + 1 turns.
        origin: Who asks, for listings.

    Returns:
        The runs, by turn; fewer than `config.turns` if no trajectory could be gone on from.
    """
    rng = np.random.default_rng(config.seed)
    results = [await run_task(task, deps, replace(config, turns=1), origin=origin)]
    while len(results) < config.turns:
        standing = [
            t.number for t in results[-1].trajectories if t.status.final and not t.reason.startswith("declined")
        ]
        if not standing:
            break
        chosen = standing[int(rng.integers(len(standing)))]
        turn = len(results)
        run_id = await asyncio.to_thread(
            _branch, task, deps, replace(config, turns=turn + 1), origin, results[-1].run, chosen
        )
        results.append(await resume_run(run_id, deps))
    return results


def _branch(task: Task, deps: Deps, config: GraphConfig, origin: str, source: str, chosen: int) -> str:
    """A new run, every trajectory of which begins with the turns of one trajectory of another run."""
    store = deps.store
    run_id = store.create_run(
        task,
        policy=deps.policy.name,
        backend=deps.verifier.backend,
        config=config.to_dict(),
        trajectories=config.trajectories,
        turns=config.turns,
        created=deps.clock(),
        origin=origin,
    )
    shared = [_open_ended(step) for step in store.steps(source, chosen) if step.node != FINISH]
    for number in range(config.trajectories):
        seed = config.seed + number
        store.save_trajectory(Trajectory(run_id, number, seed, RunStatus.INTERRUPTED, deps.clock(), reason="branch"))
        store.save_steps([replace(step, run=run_id, trajectory=number) for step in shared])
    return run_id


def _open_ended(step: Step) -> Step:
    """The step as it would have been had the trajectory not been at its last turn."""
    if step.node != "feedback":
        return step
    return replace(step, payload={**step.payload, "stop": ""})
