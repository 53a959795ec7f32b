"""Carries a plan out: every task of the suite, every seed, through the graph, many at once; what is done stays done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import monotonic
from typing import Any, TypeAlias

from langgraph.runtime import RunControl

from cudaperf_agent.errors import InputRefused, UsageError
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.records import RunStatus, Trajectory
from cudaperf_agent.tasks.model import Task
from graph.batching import BatchingPolicy, BatchPolicy
from graph.config import GraphConfig
from graph.context import Deps
from graph.results import RunResult
from graph.runner import resume_run, run_task
from training.evaluation.given import GivenCases
from training.evaluation.plan import SEED_STRIDE, Plan, Plans
from training.evaluation.suite import Item, Suite
from training.evaluation.task_by_task import TaskByTask

ORIGIN = "eval"
HAND = "hand"

Prepare: TypeAlias = Callable[[Task], Awaitable[Task]]


@dataclass(frozen=True, slots=True)
class DriveConfig:
    """How much is done at once, and for how long.

    Attributes:
        at_once: Tasks at work at once where the policy answers one request at a time.
        at_once_timed: The same where candidates are timed; also how many tasks are timed at once in any case, since the
            verifier keeps the contents of so many at hand.
        at_once_batched: And where it answers many in one call.
        batch_seconds: How long such a policy waits for more requests to gather.
        batch_size: Most requests of one call.
        seconds: After so many seconds no new task begins; `None` for no limit.
        grace: Once it is asked to end, steps at work have so many seconds; those that take longer are cancelled, and
            done again when the evaluation goes on.
        looking: How often it is looked whether it is asked to.
    """

    at_once: int = 4
    at_once_timed: int = 2
    at_once_batched: int = 64
    batch_seconds: float = 0.02
    batch_size: int = 256
    seconds: float | None = None
    grace: float = 6.0
    looking: float = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation is: tasks that are settled, and those of the plan."""

    done: int
    of: int

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return self.done == self.of


async def drive(
    suite: Suite,
    plan: Plan,
    plans: Plans,
    deps: Deps,
    *,
    prepare: Prepare,
    given: GivenCases | None = None,
    config: DriveConfig | None = None,
    say: Callable[[str], None] = lambda text: None,
    control: RunControl | None = None,
) -> Progress:
    """Do what is left of the plan.

    Args:
        suite: Whose tasks.
        plan: What to do; changed and saved as tasks are understood.
        plans: Where it is saved.
        deps: Policy, verifier, store and so on.
        prepare: Makes a loaded task ready: extents, ranges, roles.
        given: Judges by a benchmark's own cases, where the suite has some; without it they are not run.
        config: How much at once.
        say: Progress, a line per task.
        control: Its ``request_drain()`` ends the work after the steps at hand, or after `config.grace` seconds.

    Raises:
        StoreError: The store fails.
        BackendUnavailable: A compiler is missing.
    """
    config = config or DriveConfig()
    batched = isinstance(deps.policy, BatchPolicy)
    if isinstance(deps.policy, BatchPolicy):
        # One front for all tasks: a run's own would see that run's requests only.
        front = BatchingPolicy(deps.policy, seconds=config.batch_seconds, size=config.batch_size)
        deps = replace(deps, policy=front)
    timed = deps.verifier.backend == "gpu"
    if timed:
        deps = replace(deps, verifier=TaskByTask(deps.verifier, config.at_once_timed))
    known = frozenset(run.id for run in await asyncio.to_thread(deps.store.list_runs, None, origin=ORIGIN))
    until = monotonic() + config.seconds if config.seconds is not None else None
    control = control or RunControl()
    work = _Work(suite, plan, plans, deps, prepare, given, say, control, known, until)
    turns = asyncio.Semaphore(config.at_once_batched if batched else config.at_once_timed if timed else config.at_once)

    async def one(item: Item) -> None:
        async with turns:
            await work.task(item)

    jobs: list[asyncio.Task[None]] = []
    ending = asyncio.create_task(_end_in_time(control, jobs, config))
    try:
        async with asyncio.TaskGroup() as group:
            jobs += [group.create_task(one(item)) for item in suite.in_turn()]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    finally:
        ending.cancel()
    return Progress(work.done, len(suite.items))


async def _end_in_time(control: RunControl, jobs: Sequence[asyncio.Task[None]], config: DriveConfig) -> None:
    """Cancel what has not ended some time after the end was asked for."""
    while not control.drain_requested:  # noqa: ASYNC110 (another thread may ask, and wakes nobody)
        await asyncio.sleep(config.looking)
    await asyncio.sleep(config.grace)
    for job in jobs:
        job.cancel()


@dataclass(slots=True)
class _Work:
    suite: Suite
    plan: Plan
    plans: Plans
    deps: Deps
    prepare: Prepare
    given: GivenCases | None
    say: Callable[[str], None]
    control: RunControl
    known: frozenset[str]
    until: float | None
    done: int = 0
    fresh: int = 0
    fresh_tasks: int = 0
    started: float = field(default_factory=monotonic)

    async def task(self, item: Item) -> None:
        """Everything of one task, unless it is time to stop."""
        entry = self.plan.tasks[item.key]
        if "refused" in entry:
            self.done += 1
            return
        if self.control.drain_requested or (self.until is not None and monotonic() >= self.until):
            return
        before = self.fresh
        ready = await self._ready(item)
        if ready is None:
            self.done += 1
            self.say(f"[{self.done}/{len(self.suite.items)}] {item.key}: refused: {entry['refused']}")
            return
        settings = self.plan.settings
        results = await asyncio.gather(*(self._run(item, ready, seed) for seed in range(settings.seeds)))
        hand = await self._hand(item, ready) if item.hand else None
        ended = [t for r in results for t in r.trajectories]
        whole = len(ended) == settings.n * settings.seeds and all(
            r.status is not RunStatus.INTERRUPTED for r in results
        )
        if not whole or (hand is not None and hand.status is RunStatus.INTERRUPTED):
            return
        if item.given and self.given is not None and "given" not in entry:
            everything = {str(seed): r for seed, r in enumerate(results)} | ({HAND: hand} if hand is not None else {})
            await self._judge_given(item, ready, everything, self.given)
        correct = sum(t.best_turn is not None and t.best_turn == t.first_choice for t in ended)
        errors = sum(t.status is RunStatus.ERROR for t in ended)
        told = f"{correct} of {len(ended)} trajectories correct" + (f", {errors} stopped by an error" if errors else "")
        self._settled(item, told, fresh=self.fresh > before)

    async def _ready(self, item: Item) -> Task | None:
        """The task that runs are made of: a stored run's, or made now; `None` if it is refused."""
        entry = self.plan.tasks[item.key]
        for seed in range(self.plan.settings.seeds):
            run_id = self.plan.run_id(item.key, seed)
            if run_id in self.known and "task" in entry:
                return (await asyncio.to_thread(self.deps.store.get_run, run_id)).task
        try:
            task = await self.prepare(await asyncio.to_thread(item.load))
        except (InputRefused, UsageError) as error:
            entry["refused"] = " ".join(f"{error.where or item.key}: {error.message}".split())
            self.fresh += 1
            self.plans.save(self.plan)
            return None
        entry["task"] = task.digest
        if item.describe is not None:
            entry["facts"] = {**entry["facts"], **await asyncio.to_thread(item.describe, task)}
        self.plans.save(self.plan)
        return task

    async def _run(self, item: Item, task: Task, seed: int) -> RunResult:
        settings = self.plan.settings
        config = GraphConfig(
            turns=settings.turns,
            trajectories=settings.n,
            seed=seed * SEED_STRIDE,
            # The store alone can resume a trajectory; thousands of checkpoint files would only cost time.
            checkpointing=False,
        )
        return await self._carried_out(self.plan.run_id(item.key, seed), task, self.deps, config)

    async def _hand(self, item: Item, task: Task) -> RunResult:
        deps = replace(self.deps, policy=HandPolicy(item.hand))
        config = GraphConfig(turns=1, trajectories=1, checkpointing=False)
        return await self._carried_out(self.plan.run_id(item.key, HAND), task, deps, config)

    async def _carried_out(self, run_id: str, task: Task, deps: Deps, config: GraphConfig) -> RunResult:
        if run_id in self.known:
            was = await asyncio.to_thread(deps.store.trajectories, run_id)
            self.fresh += len(was) < config.trajectories or not all(t.status.final for t in was)
            return await resume_run(run_id, deps, control=self.control)
        self.fresh += 1
        return await run_task(task, deps, config, run_id=run_id, origin=ORIGIN, control=self.control)

    async def _judge_given(self, item: Item, task: Task, results: Mapping[str, RunResult], given: GivenCases) -> None:
        """The kernel of each trajectory on the benchmark's own cases: the chosen one, else the last that it wrote."""
        entry = self.plan.tasks[item.key]
        cases = await given.cases(item, task)
        found: dict[str, Any] = {}
        if cases:
            for name, result in results.items():
                for trajectory in result.trajectories:
                    source = _final_source(result, trajectory)
                    judged = await given.judge(task, source, cases) if source else None
                    found[f"{name}/{trajectory.number}"] = asdict(judged) if judged is not None else None
        entry["given"] = found
        entry["facts"] = {**entry["facts"], "its cases that could be run": len(cases)}
        self.plans.save(self.plan)

    def _settled(self, item: Item, told: str, *, fresh: bool) -> None:
        self.done += 1
        if not fresh:
            return
        # What an earlier process did says nothing of how long the rest takes.
        self.fresh_tasks += 1
        left = len(self.suite.items) - self.done
        seconds = (monotonic() - self.started) / self.fresh_tasks * left
        eta = f"; {duration(seconds)} to go" if left else ""
        self.say(f"[{self.done}/{len(self.suite.items)}] {item.key}: {told}{eta}")


def _final_source(result: RunResult, trajectory: Trajectory) -> str | None:
    sources = {a.turn: a.source for a in result.attempts if a.trajectory == trajectory.number and a.source}
    if trajectory.first_choice is not None:
        return sources.get(trajectory.first_choice)
    return sources[max(sources)] if sources else None


class HandPolicy:
    """Proposes a hand-written kernel, so that it is judged by the same rules as everything else."""

    def __init__(self, source: str) -> None:
        """Args: source: the ``.cu`` text."""
        self._source = source

    @property
    def name(self) -> str:
        """``hand``."""
        return HAND

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """The kernel."""
        return [Proposal(self._source, source=self._source, strategy=HAND, model=HAND)]

    async def aclose(self) -> None:
        """Nothing to release."""


def duration(seconds: float) -> str:
    """Coarsely: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
