"""Why a ranker does or does not carry over to another set of kernels: what differs between its features and theirs.

For each feature: in how many tasks it varies at all, how much of the other set lies beyond the clip of φ̂, whether it
goes with speed within tasks in either set, and what the ranker's order of the other set becomes when the feature is
held at its task's mean. For both sets: how many features tell two variants of a task apart, and how far a kernel is
from the nearest one of another family in what the ranker was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from training.dataset.table import Table
from training.evaluation.intervals import BootstrapConfig, Interval, bootstrap, paired_difference
from training.rank_measures import MeasureConfig, spearman, usable
from training.ranker import TrainConfig, train
from training.ranker_eval import shown

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class CarryConfig:
    """Numbers of the comparison.

    Attributes:
        train: The ranker.
        measures: Which tasks count.
        intervals: The bootstrap.
        far: Quantile of the distances within training beyond which a kernel counts as far.
    """

    train: TrainConfig = field(default_factory=TrainConfig)
    measures: MeasureConfig = field(default_factory=MeasureConfig)
    intervals: BootstrapConfig = field(default_factory=lambda: BootstrapConfig(resamples=4000))
    far: float = 0.95


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature in both sets.

    Attributes:
        name: Of the feature.
        varies, varies_there: Share of tasks within which it varies, in training and in the other set.
        clipped: Share of the other set's kernels whose φ̂ lies beyond the clip.
        rho, rho_there: Mean within-task ρ of the feature with speed, over tasks within which it varies; `None` without.
        held: ρ of the ranker on the other set with the feature held at its task's mean, less that with it.
    """

    name: str
    varies: float
    varies_there: float
    clipped: float
    rho: Interval | None
    rho_there: Interval | None
    held: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs.

    Attributes:
        features: One by one.
        apart, apart_there: Median number of features that differ between two variants of a task.
        far: Share of the other set that is farther from its nearest kernel of training than `CarryConfig.far` of the
            training kernels are from theirs of another family.
        rho: Of the ranker on the other set.
        rows, rows_there: Kernels.
    """

    features: tuple[Feature, ...]
    apart: float
    apart_there: float
    far: float
    rho: Interval
    rows: int
    rows_there: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def compare_sets(training: Table, other: Table, config: CarryConfig | None = None) -> Comparison:
    """Compare what a ranker is trained on with another set.

    Raises:
        ConfigError: No task of the other set counts.
    """
    config = config or CarryConfig()
    tasks = usable(other, config.measures, kept=False)
    if not tasks:
        raise ConfigError("no task of the other set has enough timed kernels", hint="measure more of them")
    ranker = train(training, config.train).ranker
    clusters = [str(other.family[rows[0]]) for rows in tasks]

    def order(phi: NDArray[np.float64]) -> list[float]:
        scores = ranker.scores(phi)
        return [spearman(scores[rows], other.gain[rows]) for rows in tasks]

    own = order(other.phi)
    standard = np.abs(other.phi - ranker.mean) / ranker.deviation
    found = []
    for column, name in enumerate(ORDER):
        held = other.phi.copy()
        for rows in tasks:
            held[rows, column] = other.phi[rows, column].mean()
        found.append(
            Feature(
                name,
                _varies(training, column),
                _varies(other, column),
                float((standard[:, column] > config.train.clip).mean()),
                _alone(training, column, config),
                _alone(other, column, config),
                paired_difference(order(held), own, clusters=clusters, config=config.intervals),
            )
        )
    return Comparison(
        tuple(found),
        _apart(training),
        _apart(other),
        _far(training, other, ranker.mean, ranker.deviation, config.far),
        bootstrap(own, clusters=clusters, config=config.intervals),
        len(training),
        len(other),
    )


def _varies(table: Table, column: int) -> float:
    return float(np.mean([np.ptp(table.phi[rows, column]) > 0 for rows in table.tasks()]))


def _alone(table: Table, column: int, config: CarryConfig) -> Interval | None:
    tasks = [r for r in usable(table, config.measures, kept=False) if np.ptp(table.phi[r, column]) > 0]
    if not tasks:
        return None
    values = [spearman(table.phi[rows, column], table.gain[rows]) for rows in tasks]
    families = [str(table.family[rows[0]]) for rows in tasks]
    return bootstrap(values, clusters=families, config=config.intervals)


def _apart(table: Table) -> float:
    counts: list[int] = []
    for rows in table.tasks():
        first, second = np.triu_indices(rows.size, 1)
        counts += (table.phi[rows[first]] != table.phi[rows[second]]).sum(1).tolist()
    return float(np.median(counts)) if counts else 0.0


def _far(
    training: Table, other: Table, mean: NDArray[np.float64], deviation: NDArray[np.float64], quantile: float
) -> float:
    known, there = (training.phi - mean) / deviation, (other.phi - mean) / deviation
    own = [
        _nearest(known[training.family == family], known[training.family != family])
        for family in np.unique(training.family)
    ]
    limit = np.quantile(np.concatenate(own), quantile)
    return float((_nearest(there, known) > limit).mean())


def _nearest(points: NDArray[np.float64], among: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (points**2).sum(1)[:, None] + (among**2).sum(1)[None, :] - 2 * points @ among.T
    return np.asarray(np.sqrt(np.maximum(squares.min(1), 0.0)), dtype=np.float64)


def comparison_markdown(result: Comparison, names: Sequence[str] = ("families", "by hand")) -> str:
    """The comparison as Markdown; `names` of the two sets."""
    here, there = names
    lines = [
        f"Two variants of a task differ in {result.apart:g} of the {len(ORDER)} features ({here}, median) and in "
        f"{result.apart_there:g} ({there}). {result.far:.0%} of the kernels {there} are farther from the nearest one "
        f"trained on than 95 % of those are from another family's. ρ of the ranker {there}: {shown(result.rho)}.",
        "",
        f"| feature | varies in tasks, {here} | {there} | beyond the clip, {there} | ρ with speed, {here} | {there} |"
        f" ρ of the ranker {there} without it, less with it |",
        "|---|---|---|---|---|---|---|",
    ]
    for f in result.features:
        shares = f"{f.varies:.2f} | {f.varies_there:.2f} | {f.clipped:.2f}"
        lines.append(f"| {f.name} | {shares} | {shown(f.rho)} | {shown(f.rho_there)} | {shown(f.held)} |")
    return "\n".join(lines) + "\n"
