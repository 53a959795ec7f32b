"""The noise ceiling of the ranker: how well one measurement's times predict another's, and how near the score comes.

Scores are judged by either measurement within the same tasks, with the measures and intervals of `rank_measures`. The
times of one measurement are a score of the other's like any other. Its ρ is the reliability of *one* measurement: both
are noisy, so a score that knew the true times would reach about √ρ (the correction for attenuation, Spearman 1904), and
no score more. A score of φ cannot tell variants of equal φ apart: `SAME_PHI` is the first measurement's times averaged
over those of a task, and so about the most that a score of φ can reach by the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.reward.structural import Ranker
from training.dataset.again import Twice
from training.dataset.table import Table
from training.evaluation.intervals import Interval, paired_difference, ratio
from training.rank_measures import Measures, Scores, by_task, measure, usable
from training.ranker_eval import HEADS, EvalConfig, family_folds, learned, shown, strategy_lookup
from training.splits import UNSEEN_FAMILIES

REPEAT, OUT_OF_FOLD, LOOKUP, TRAINED = (
    "the other measurement",
    "ranker, out of fold",
    "strategy lookup",
    "trained ranker",
)
SAME_PHI = "the first measurement, equal φ averaged"
_SHARES = ("tau", "rho", "accuracy", "within_strategy", "gain_of_choice", "rerank")
_CHANCE = {"accuracy": 0.5, "within_strategy": 0.5}


@dataclass(frozen=True, slots=True)
class Row:
    """One scorer by the times of one measurement (``first`` or ``second``)."""

    scorer: str
    judge: str
    measures: Measures


@dataclass(frozen=True, slots=True)
class Group:
    """Every scorer within the same tasks.

    Attributes:
        name: Of the tasks.
        rows: Judged by the first measurement and by the second; `SAME_PHI`, made of the first, by the second alone.
        change: ρ of each scorer of both by the second measurement less that by the first.
        reach: By scorer and measure, judged by the second: what the scorer has above chance, as a share of what the
            first measurement's times have; ``rho_true`` of √ρ instead. A measure without tasks, or in which the first
            measurement has nothing above chance, is not there.
    """

    name: str
    rows: tuple[Row, ...]
    change: dict[str, Interval]
    reach: dict[str, dict[str, Interval]]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What was found.

    Attributes:
        groups: All tasks; those worth it (`MeasureConfig.kept_gain`); those of families unseen in training.
        folds: Of families, for what is scored out of fold.
        data_digest: SHA-256 of the first measurement.
    """

    groups: tuple[Group, ...]
    folds: int
    data_digest: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def ceiling(
    both: Twice, ranker: Ranker, config: EvalConfig | None = None, say: Callable[[str], None] = lambda text: None
) -> Ceiling:
    """Score out of fold as `ranker_eval.evaluate` does, on all of the first measurement, and judge by both.

    Args:
        both: The two measurements.
        ranker: A trained one. It may have learned from the first measurement's times of tasks of seen families.
        config: Numbers.
        say: Progress, one line per scorer.

    Raises:
        ConfigError: No task has enough variants that differ in speed in both.
    """
    config = config or EvalConfig()
    table, folds = both.table, family_folds(both.table, config.folds, config.seed)
    scores: dict[str, Scores] = {}
    for name, scorer in ((OUT_OF_FOLD, learned(config.train)), (LOOKUP, strategy_lookup)):
        whole = np.zeros(len(table))
        for fold in folds:
            whole[fold] = scorer(table.take(~fold), table.take(fold))
        scores[name] = whole[both.rows]
        say(f"scored: {name}")
    scores[TRAINED] = ranker.scores(both.first.phi)
    unseen = np.isin(both.first.family, list(UNSEEN_FAMILIES))
    masks = {
        "All tasks": _common(both, config, kept=False),
        f"Tasks whose best variant reaches {config.measures.kept_gain:g}× naive": _common(both, config, kept=True),
        "Tasks of families that no ranker is trained on": _common(both, config, kept=False) & unseen,
    }
    if not masks["All tasks"].any():
        raise ConfigError(
            f"no task has {config.measures.fewest} variants that differ in speed in both measurements",
            hint="measure more of them again",
        )
    groups = [_group(name, both, scores, mask, config) for name, mask in masks.items() if mask.any()]
    return Ceiling(tuple(groups), len(folds), both.table.digest)


def _common(both: Twice, config: EvalConfig, *, kept: bool) -> NDArray[np.bool_]:
    """Rows of the tasks that count by both measurements."""
    mask = np.ones(len(both.first), dtype=np.bool_)
    for table in (both.first, both.second):
        mine = np.zeros(len(table), dtype=np.bool_)
        for rows in usable(table, config.measures, kept=kept):
            mine[rows] = True
        mask &= mine
    return mask


def _equal_phi(table: Table) -> Scores:
    """Gains, averaged over the variants of a task that have the same φ."""
    found = table.gain.copy()
    for rows in table.tasks():
        _, index, count = np.unique(table.phi[rows], axis=0, return_inverse=True, return_counts=True)
        found[rows] = (np.bincount(index, weights=table.gain[rows]) / count)[index]
    return found


def _group(name: str, both: Twice, scores: dict[str, Scores], mask: NDArray[np.bool_], config: EvalConfig) -> Group:
    judges: dict[str, Table] = {"first": both.first.take(mask), "second": both.second.take(mask)}
    own = {s: values[mask] for s, values in scores.items()}
    repeat = {"first": judges["second"].gain, "second": judges["first"].gain}
    rows = [Row(REPEAT, judge, measure(table, repeat[judge], config.measures)) for judge, table in judges.items()]
    change: dict[str, Interval] = {}
    reach: dict[str, dict[str, Interval]] = {}
    top = by_task(judges["second"], repeat["second"], config.measures)
    for scorer, values in {SAME_PHI: _equal_phi(judges["first"]), **own}.items():
        seen = ("second",) if scorer == SAME_PHI else ("first", "second")
        rows += [Row(scorer, judge, measure(judges[judge], values, config.measures)) for judge in seen]
        found = by_task(judges["second"], values, config.measures)
        intervals, clusters = config.measures.intervals, found.families
        if "first" in seen:
            before = by_task(judges["first"], values, config.measures).values["rho"]
            change[scorer] = paired_difference(found.values["rho"], before, clusters=clusters["rho"], config=intervals)
        reach[scorer] = {}
        for column in _SHARES:
            mine = np.array(found.values[column]) - _CHANCE.get(column, 0.0)
            most = np.array(top.values[column]) - _CHANCE.get(column, 0.0)
            if most.sum() > 0:
                reach[scorer][column] = ratio(mine.tolist(), most.tolist(), clusters=clusters[column], config=intervals)
            if column == "rho" and most.sum() > 0:
                true = np.sqrt(np.maximum(most, 0.0)).tolist()
                reach[scorer]["rho_true"] = ratio(mine.tolist(), true, clusters=clusters[column], config=intervals)
    return Group(name, tuple(rows), change, reach)


def ceiling_markdown(found: Ceiling) -> str:
    """The ceiling as Markdown tables."""
    names = [f.name for f in fields(Measures) if f.name != "tasks"]
    parts = [
        f"Scored out of {found.folds} folds by family; intervals are 95 %, resampling families. "
        f"Data `{found.data_digest[:12]}`."
    ]
    for group in found.groups:
        parts += ["", f"**{group.name}** ({group.rows[0].measures.tasks})", ""]
        parts.append("| scorer | judged by | " + " | ".join(HEADS[n] for n in names) + " |")
        parts.append("|---" * (len(names) + 2) + "|")
        for row in group.rows:
            cells = " | ".join(shown(getattr(row.measures, n)) for n in names)
            parts.append(f"| {row.scorer} | {row.judge} | {cells} |")
        heads = {**HEADS, "rho_true": "Spearman ρ, of √ρ"}
        columns = ("tau", "rho", "rho_true", *_SHARES[2:])
        parts += ["", "| share of the first measurement's, by the second | " + " | ".join(heads[n] for n in columns)]
        parts[-1] += " | ρ by the second less by the first |"
        parts.append("|---" * (len(columns) + 2) + "|")
        for scorer, reach in group.reach.items():
            cells = " | ".join(shown(reach.get(n)) for n in columns)
            parts.append(f"| {scorer} | {cells} | {shown(group.change.get(scorer))} |")
    return "\n".join(parts) + "\n"
