"""How well scores order the variants of each task: Kendall τ, Spearman ρ, pair accuracy, top-1 regret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from training.dataset.table import Table
from training.evaluation.intervals import BootstrapConfig, Interval, bootstrap
from training.pairs import PairConfig, task_pairs

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """What counts.

    Attributes:
        fewest: Tasks with fewer variants are left out.
        kept_gain: A task is *kept* when its best variant reaches so many times the naive speed.
        near_tie: Pairs nearer than this in log2, or than two standard errors, are near ties and do not count.
        best_of: Variants drawn for the reranker.
        draws: Draws of them per task.
        intervals: The bootstrap.
    """

    fewest: int = 5
    kept_gain: float = 1.5
    near_tie: float = 0.15
    best_of: int = 16
    draws: int = 64
    intervals: BootstrapConfig = field(default_factory=lambda: BootstrapConfig(resamples=4000))

    @property
    def pairs(self) -> PairConfig:
        """Pairs without near ties."""
        return PairConfig("all", self.near_tie)


def ranks(values: Scores) -> Scores:
    """Ranks from 0, ties averaged."""
    order = np.argsort(values, kind="stable")
    place = np.empty(values.size)
    place[order] = np.arange(values.size)
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    total = np.bincount(index, weights=place)
    return np.asarray((total / count)[index], dtype=np.float64)


def spearman(scores: Scores, gain: Scores) -> float:
    """Spearman's ρ with averaged ties; 0 where either is constant."""
    a, b = ranks(scores), ranks(gain)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def kendall(scores: Scores, gain: Scores) -> float:
    """Kendall's τ-b; 0 where either is constant."""
    upper = np.triu_indices(scores.size, 1)
    a = np.sign(scores[:, None] - scores[None, :])[upper]
    b = np.sign(gain[:, None] - gain[None, :])[upper]
    size = float(np.sqrt(np.count_nonzero(a) * np.count_nonzero(b)))
    return float(a @ b) / size if size > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Measures:
    """One scorer on some tasks, each with its interval; `None` where no task has what it needs.

    Attributes:
        tau, rho: Within-task rank correlations.
        accuracy: Share of pairs in the right order, near ties left out, equal scores half right.
        within_strategy: The same among pairs of one strategy.
        regret: log2 of best ÷ chosen speed, chosen by the score.
        gain_of_choice: log2 of chosen ÷ average speed of the task: what the score adds to a random choice.
        rerank: log2 of the speed chosen among 16 drawn variants ÷ the expected speed of a random one.
        tasks: How many.
    """

    tau: Interval | None
    rho: Interval | None
    accuracy: Interval | None
    within_strategy: Interval | None
    regret: Interval | None
    gain_of_choice: Interval | None
    rerank: Interval | None
    tasks: int


def usable(table: Table, config: MeasureConfig, *, kept: bool) -> list[NDArray[np.intp]]:
    """Row numbers of the tasks that count: enough variants, one pair that is no near tie; `kept`: and worth it."""
    found = []
    for rows in table.tasks():
        if rows.size < config.fewest or not task_pairs(table, rows, config.pairs).better.size:
            continue
        if kept and table.gain[rows].max() < np.log2(config.kept_gain):
            continue
        found.append(rows)
    return found


def pair_accuracy(
    table: Table,
    scores: Scores,
    rows: NDArray[np.intp],
    config: MeasureConfig,
    wanted: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.bool_]] | None = None,
) -> float | None:
    """Share of a task's pairs that the scores order rightly; `wanted` chooses among them. `None` without pairs."""
    pairs = task_pairs(table, rows, config.pairs)
    better, worse = pairs.better, pairs.worse
    if wanted is not None:
        chosen = wanted(better, worse)
        better, worse = better[chosen], worse[chosen]
    if not better.size:
        return None
    return float(((scores[better] > scores[worse]) + 0.5 * (scores[better] == scores[worse])).mean())


@dataclass(frozen=True, slots=True)
class TaskValues:
    """The measures of one scorer, task by task; a task without what a measure needs is left out of it.

    Attributes:
        values: By measure, one per task.
        families: By measure, of those tasks.
        tasks: How many there are.
    """

    values: dict[str, list[float]]
    families: dict[str, list[str]]
    tasks: int


def by_task(table: Table, scores: Scores, config: MeasureConfig, *, kept: bool = False) -> TaskValues:
    """All measures of one scorer, by task. Ties for the first place count with their average."""
    rng = np.random.default_rng(config.intervals.seed)
    values: dict[str, list[float]] = {name: [] for name in Measures.__slots__ if name != "tasks"}
    families: dict[str, list[str]] = {name: [] for name in values}
    tasks = usable(table, config, kept=kept)

    def same_strategy(better: NDArray[np.intp], worse: NDArray[np.intp]) -> NDArray[np.bool_]:
        return np.asarray(table.strategy[better] == table.strategy[worse], dtype=np.bool_)

    for rows in tasks:
        own, gain = scores[rows], table.gain[rows]
        chosen = float(gain[own == own.max()].mean())
        found = {
            "tau": kendall(own, gain),
            "rho": spearman(own, gain),
            "accuracy": pair_accuracy(table, scores, rows, config),
            "within_strategy": pair_accuracy(table, scores, rows, config, same_strategy),
            "regret": float(gain.max()) - chosen,
            "gain_of_choice": chosen - float(gain.mean()),
            "rerank": _reranked(own, gain, config, rng),
        }
        for name, value in found.items():
            if value is not None:
                values[name].append(value)
                families[name].append(str(table.family[rows[0]]))
    return TaskValues(values, families, len(tasks))


def measure(table: Table, scores: Scores, config: MeasureConfig, *, kept: bool = False) -> Measures:
    """All measures of one scorer, each with its interval."""
    found = by_task(table, scores, config, kept=kept)

    def interval(name: str) -> Interval | None:
        values = found.values[name]
        return bootstrap(values, clusters=found.families[name], config=config.intervals) if values else None

    return Measures(**{name: interval(name) for name in found.values}, tasks=found.tasks)


def _reranked(own: Scores, gain: Scores, config: MeasureConfig, rng: np.random.Generator) -> float:
    """Mean gain of the best-scored of `best_of` drawn variants over a random one of them."""
    size = min(config.best_of, gain.size)
    total = 0.0
    for _ in range(config.draws):
        drawn = rng.permutation(gain.size)[:size]
        best = own[drawn] == own[drawn].max()
        total += float(gain[drawn][best].mean()) - float(gain[drawn].mean())
    return total / config.draws
