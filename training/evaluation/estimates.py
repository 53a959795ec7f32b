"""From the facts of an evaluation to its estimates with intervals: method §7, group by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp
from typing import Any

from training.evaluation.baselines import HAND, kind_of, named, ordered, with_fastest_c
from training.evaluation.budget import BudgetRow, budget_rows
from training.evaluation.facts import Evaluation, Outcome, TaskFacts
from training.evaluation.intervals import BootstrapConfig, Interval, bootstrap, share
from training.evaluation.metrics import (
    correct_only_geometric_mean,
    fast_p,
    headroom_closed,
    log_speed_at_k,
    pass_at_k,
)

SLOW = 5
"""A correct kernel that takes more than so many times naive CUDA's time does work over again, or by few threads."""


@dataclass(frozen=True, slots=True)
class EstimateConfig:
    """What is estimated.

    Attributes:
        ks: Of pass@k and speed@k, as far as there are trajectories.
        ps: Of fast_p.
        curve: Most points of pass@k by k.
        bootstrap: How intervals are made.
    """

    ks: tuple[int, ...] = (1, 5, 10)
    ps: tuple[float, ...] = (1.0, 1.5, 2.0)
    curve: int = 50
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)


@dataclass(frozen=True, slots=True)
class SpeedEstimates:
    """Speed against one baseline, over the tasks on which it was timed for some trajectory.

    Attributes:
        baseline: Its name.
        tasks: How many.
        speed_at: speed@k by k, slowdowns counted as 1.
        raw_at: The same with slowdowns as they are.
        fast: fast_p by p.
        mean: Geometric mean over correct, timed trajectories.
        over: How many those are.
        headroom: How much of log(T_naive / T_limit) the baseline itself closes, and over how many tasks.
        headroom_over: See there.
    """

    baseline: str
    tasks: int
    speed_at: dict[int, Interval]
    raw_at: dict[int, Interval]
    fast: dict[float, Interval]
    mean: float | None
    over: int
    headroom: float | None = None
    headroom_over: int = 0


@dataclass(frozen=True, slots=True)
class SeedEstimates:
    """One seed alone: how much the estimates move from seed to seed."""

    seed: int
    pass_at_1: float
    speed_at_1: float | None


@dataclass(frozen=True, slots=True)
class FamilyEstimates:
    """The tasks of one family."""

    family: str
    tasks: int
    trajectories: int
    pass_at_1: float
    mean: float | None
    over: int


@dataclass(frozen=True, slots=True)
class GroupEstimates:
    """One group of a suite.

    Attributes:
        group: Its name.
        tasks: Finished tasks, which everything is estimated over.
        refused: Tasks that this tool does not take.
        unfinished: Tasks with trajectories missing.
        families: Independent units of the intervals.
        trajectories: Per task.
        pass_at: pass@k by k.
        pass_of_all: pass@1 with the refused tasks counted as failures.
        curve: pass@k for k = 1, 2, ….
        by_seed: Each seed alone.
        main: Baseline of the headline and of the tables that have room for one.
        speeds: By baseline; empty where nothing was timed.
        untimed: Correct trajectories without a time among timed ones (they count as S = 1).
        unreached: Tasks that a timing after the search did not come to.
        headroom: Closed by the policy: mean over tasks of its correct trajectories.
        slow: Correct trajectories that take more than `SLOW` times as long as naive CUDA.
        beside_naive: Correct trajectories that were timed beside naive CUDA.
        budget: Turns against parallel samples.
        by_family: Only where families have several tasks.
        failures: Failed trajectories by reason.
        statuses: Per turn: attempts by status.
        hand_correct: Hand-written kernels that passed; `None` where there are none.
        hand_of: How many there are.
        given_at: pass@k by the benchmark's own cases, over the tasks of which some could be run.
        given_tasks: How many those are.
        given_only: Kernels that pass the benchmark's own cases and fail our tests, of all those that pass its cases.
        given_passed: How many pass its cases.
        given_hand: Hand-written kernels that pass its cases.
    """

    group: str
    tasks: int
    refused: int
    unfinished: int
    families: int
    trajectories: int
    pass_at: dict[int, Interval] = field(default_factory=dict)
    pass_of_all: float | None = None
    curve: tuple[float, ...] = ()
    by_seed: tuple[SeedEstimates, ...] = ()
    main: str = ""
    speeds: tuple[SpeedEstimates, ...] = ()
    untimed: int = 0
    unreached: int = 0
    headroom: Interval | None = None
    slow: int = 0
    beside_naive: int = 0
    budget: tuple[BudgetRow, ...] = ()
    by_family: tuple[FamilyEstimates, ...] = ()
    failures: dict[str, int] = field(default_factory=dict)
    statuses: tuple[dict[str, int], ...] = ()
    hand_correct: int | None = None
    hand_of: int = 0
    given_at: dict[int, Interval] = field(default_factory=dict)
    given_tasks: int = 0
    given_only: int = 0
    given_passed: int = 0
    given_hand: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def with_derived(task: TaskFacts) -> TaskFacts:
    """The task with speedups against the fastest C and the hand-written kernel added to its outcomes."""
    hand = task.hand if task.hand is not None and task.hand.correct else None

    def more(outcome: Outcome) -> Outcome:
        speedups = with_fastest_c(outcome.speedups)
        common = next((b for b in outcome.speedups if hand is not None and b in hand.speedups), None)
        if common is not None and hand is not None:
            # Both were compared with the same baseline, in the same kind of time.
            speedups[HAND] = outcome.speedups[common] / hand.speedups[common]
        turns = tuple(replace(t, speedups=with_fastest_c(t.speedups)) for t in outcome.turns)
        return replace(outcome, speedups=speedups, turns=turns)

    return replace(task, outcomes=tuple(more(o) for o in task.outcomes))


def estimate(evaluation: Evaluation, group: str | None, config: EstimateConfig | None = None) -> GroupEstimates:
    """Everything about one group (all tasks where `None`)."""
    config = config or EstimateConfig()
    of_group = [t for t in evaluation.tasks if group in (None, t.group)]
    tasks = [with_derived(t) for t in of_group if t.outcomes]
    refused = sum(bool(t.refused) for t in of_group)
    unfinished = len(of_group) - len(tasks) - refused
    name = group if group is not None else "all"
    families = [t.family for t in tasks]
    each = evaluation.n * evaluation.seeds
    if not tasks:
        return GroupEstimates(name, 0, refused, unfinished, 0, each)

    def mean(value: Callable[[TaskFacts], float]) -> Interval:
        return share([value(t) for t in tasks], clusters=families, config=config.bootstrap)

    counts = [sum(o.correct for o in t.outcomes) for t in tasks]
    speeds = tuple(_speed(b, tasks, config) for b in _baselines(tasks))
    main = speeds[0].baseline if speeds else ""
    reached = [t for t in tasks if not t.unreached]
    searched = any(turn.speedups for t in tasks for o in t.outcomes for turn in o.turns)
    hands = [t.hand for t in tasks if t.hand is not None]
    beside = _beside_naive(tasks)
    passes = {k: mean(lambda t, k=k: _pass(t, k)) for k in config.ks if k <= each}  # type: ignore[misc]
    return GroupEstimates(
        group=name,
        tasks=len(tasks),
        refused=refused,
        unfinished=unfinished,
        families=len(set(families)),
        trajectories=each,
        pass_at=passes,
        pass_of_all=passes[1].value * len(tasks) / (len(tasks) + refused),
        curve=tuple(
            sum(pass_at_k(each, c, k) for c in counts) / len(tasks) for k in range(1, min(each, config.curve) + 1)
        ),
        by_seed=tuple(_seed(s, tasks, main) for s in range(evaluation.seeds)) if evaluation.seeds > 1 else (),
        main=main,
        speeds=speeds,
        untimed=sum(o.correct and not o.speedups for t in reached for o in t.outcomes) if speeds else 0,
        unreached=len(tasks) - len(reached),
        headroom=_headroom(tasks, config),
        slow=sum(speedup * SLOW < 1 for speedup in beside),
        beside_naive=len(beside),
        budget=budget_rows(tasks, evaluation.turns, main if searched else "", config.bootstrap),
        by_family=_families(tasks, main) if len(set(families)) < len(tasks) else (),
        failures=dict(Counter(o.reason for t in tasks for o in t.outcomes if not o.correct).most_common()),
        statuses=_statuses(tasks),
        hand_correct=sum(h.correct for h in hands) if hands else None,
        hand_of=len(hands),
        **_given(tasks, config),
    )


def _beside_naive(tasks: Sequence[TaskFacts]) -> list[float]:
    outcomes = (o for t in tasks for o in t.outcomes if o.correct)
    return [speedup for o in outcomes for b, speedup in o.speedups.items() if kind_of(b) == "naive"]


def _given(tasks: Sequence[TaskFacts], config: EstimateConfig) -> dict[str, Any]:
    having = [t for t in tasks if all(o.given is not None for o in t.outcomes)]
    if not having:
        return {}
    families = [t.family for t in having]
    each = len(having[0].outcomes)
    passed = [o for t in having for o in t.outcomes if o.given]

    def at(k: int) -> Interval:
        values = [pass_at_k(each, sum(bool(o.given) for o in t.outcomes), k) for t in having]
        return share(values, clusters=families, config=config.bootstrap)

    return {
        "given_at": {k: at(k) for k in config.ks if k <= each},
        "given_tasks": len(having),
        "given_only": sum(not o.correct for o in passed),
        "given_passed": len(passed),
        "given_hand": sum(t.hand is not None and bool(t.hand.given) for t in having),
    }


def _pass(task: TaskFacts, k: int) -> float:
    return pass_at_k(len(task.outcomes), sum(o.correct for o in task.outcomes), k)


def _baselines(tasks: Sequence[TaskFacts]) -> tuple[str, ...]:
    return ordered(b for t in tasks for o in t.outcomes for b in o.speedups)


def _speed(baseline: str, tasks: Sequence[TaskFacts], config: EstimateConfig) -> SpeedEstimates:
    """Over all tasks for what a user gets from the policy: a task whose trajectories all fail counts as S = 1."""
    having = [t for t in tasks if _comparable(t, baseline)]
    families = [t.family for t in having]
    runs = [[o.against(baseline) for o in t.outcomes] for t in having]
    each = len(runs[0])

    def exponentiated(k: int, raw: bool) -> Interval:
        logs = [log_speed_at_k(r, k, raw=raw) for r in runs]
        found = bootstrap(logs, clusters=families, config=config.bootstrap)
        return found.exponentiated(0.0 if raw else 1.0)

    ks = [k for k in config.ks if k <= each]
    average = correct_only_geometric_mean([t for r in runs for t in r])
    own = [h for t in having for o in t.outcomes if (h := _own_headroom(o, baseline)) is not None]
    return SpeedEstimates(
        baseline,
        len(having),
        {k: exponentiated(k, False) for k in ks},
        {k: exponentiated(k, True) for k in ks},
        {p: share([fast_p(r, p) for r in runs], clusters=families, config=config.bootstrap) for p in config.ps},
        average.value,
        average.over,
        sum(own) / len(own) if own else None,
        len(own),
    )


def _comparable(task: TaskFacts, baseline: str) -> bool:
    """Whether the task belongs to the mean: the baseline was timed there, or nothing correct was there to be timed.

    A hand-written baseline exists for some tasks only, whether or not the policy succeeds there.
    """
    if task.unreached:
        return False
    if kind_of(baseline) == "hand":
        return task.hand is not None and task.hand.correct
    correct = [o for o in task.outcomes if o.correct]
    return not correct or any(baseline in o.speedups for o in correct)


def _own_headroom(outcome: Outcome, baseline: str) -> float | None:
    """Of log(T_naive / T_limit), the share that the baseline closes: times in units of the candidate's."""
    naive, limit = named(outcome.speedups, "naive"), named(outcome.speedups, "limit")
    own = outcome.speedups.get(baseline)
    if not outcome.correct or naive is None or limit is None or own is None or kind_of(baseline) == "end_to_end":
        return None
    return headroom_closed(naive, own, limit)


def _headroom(tasks: Sequence[TaskFacts], config: EstimateConfig) -> Interval | None:
    found = []
    for task in tasks:
        closed = []
        for outcome in task.outcomes:
            naive, limit = named(outcome.speedups, "naive"), named(outcome.speedups, "limit")
            if outcome.correct and naive is not None and limit is not None:
                closed.append(headroom_closed(naive, 1.0, limit))
        known = [c for c in closed if c is not None]
        if known:
            found.append((task.family, sum(known) / len(known)))
    if not found:
        return None
    return bootstrap([v for _, v in found], clusters=[f for f, _ in found], config=config.bootstrap)


def _seed(seed: int, tasks: Sequence[TaskFacts], main: str) -> SeedEstimates:
    of_seed = [[o for o in t.outcomes if o.seed == seed] for t in tasks]
    passed = sum(sum(o.correct for o in os) / len(os) for os in of_seed) / len(of_seed)
    if not main:
        return SeedEstimates(seed, passed, None)
    of_reached = [[o for o in t.outcomes if o.seed == seed] for t in tasks if not t.unreached]
    logs = [log_speed_at_k([o.against(main) for o in os], 1) for os in of_reached]
    return SeedEstimates(seed, passed, exp(sum(logs) / len(logs)))


def _families(tasks: Sequence[TaskFacts], main: str) -> tuple[FamilyEstimates, ...]:
    found = []
    for family in sorted({t.family for t in tasks}):
        own = [t for t in tasks if t.family == family]
        passed = sum(sum(o.correct for o in t.outcomes) / len(t.outcomes) for t in own) / len(own)
        average = correct_only_geometric_mean([o.against(main) for t in own for o in t.outcomes])
        trajectories = sum(len(t.outcomes) for t in own)
        found.append(FamilyEstimates(family, len(own), trajectories, passed, average.value, average.over))
    return tuple(found)


def _statuses(tasks: Sequence[TaskFacts]) -> tuple[dict[str, int], ...]:
    by_turn: list[Counter[str]] = []
    for task in tasks:
        for outcome in task.outcomes:
            for number, turn in enumerate(outcome.turns):
                while len(by_turn) <= number:
                    by_turn.append(Counter())
                by_turn[number][turn.status or "error"] += 1
    return tuple(dict(sorted(c.items())) for c in by_turn)
