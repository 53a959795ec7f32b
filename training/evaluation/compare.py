"""Two evaluations on the tasks they have in common: paired differences with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any, NamedTuple

from training.evaluation.baselines import LIMIT, ordered
from training.evaluation.document import (
    Document,
    Section,
    Table,
    percent,
    signed_percent_interval,
    times,
    times_interval,
)
from training.evaluation.estimates import EstimateConfig, with_derived
from training.evaluation.facts import Evaluation, TaskFacts
from training.evaluation.intervals import Interval, paired_difference, share_difference
from training.evaluation.metrics import correct_only_geometric_mean, fast_p, log_speed_at_k, pass_at_k


@dataclass(frozen=True, slots=True)
class ShareDifference:
    """A share of both, and the first less the second."""

    name: str
    first: float
    second: float
    difference: Interval


@dataclass(frozen=True, slots=True)
class SpeedRatio:
    """A speed of both against one baseline, and the first over the second."""

    name: str
    baseline: str
    tasks: int
    first: float
    second: float
    ratio: Interval


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """One group of tasks.

    Attributes:
        group: Its name.
        tasks: In common, finished in both.
        families: Independent units.
        shares: pass@k and fast_p.
        speeds: speed@k, and the mean over tasks that both solve (``common-correct``).
    """

    group: str
    tasks: int
    families: int
    shares: tuple[ShareDifference, ...] = ()
    speeds: tuple[SpeedRatio, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations.

    Attributes:
        first, second: Names.
        groups: All common tasks first, then each group.
        left_out: Tasks that only one has finished.
        changed: Tasks that both have, under one key, but are not the same.
    """

    first: str
    second: str
    groups: tuple[GroupComparison, ...]
    left_out: int
    changed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


class _Pair(NamedTuple):
    first: TaskFacts
    second: TaskFacts


def compare(first: Evaluation, second: Evaluation, config: EstimateConfig | None = None) -> Comparison:
    """Differences on common tasks; a task is the same if key and digest are."""
    config = config or EstimateConfig()
    others = {t.key: t for t in second.finished()}
    both = [_Pair(t, others[t.key]) for t in first.finished() if t.key in others]
    pairs = [_Pair(with_derived(a), with_derived(b)) for a, b in both if a.digest == b.digest]
    every = {t.key for t in (*first.finished(), *second.finished())}
    groups = list(dict.fromkeys(p.first.group for p in pairs))
    found = [_group("all", pairs, config)] if len(groups) != 1 else []
    found += [_group(group, [p for p in pairs if p.first.group == group], config) for group in groups]
    changed = tuple(a.key for a, b in both if a.digest != b.digest)
    return Comparison(first.name, second.name, tuple(found), len(every) - len(both), changed)


def _group(name: str, pairs: Sequence[_Pair], config: EstimateConfig) -> GroupComparison:
    families = [p.first.family for p in pairs]
    if not pairs:
        return GroupComparison(name, 0, 0)
    least = min(min(len(t.outcomes) for t in pair) for pair in pairs)
    shares = [_passes(pairs, families, k, config) for k in config.ks if k <= least]
    names = ordered(b for p in pairs for t in p for o in t.outcomes for b in o.speedups)
    speeds: list[SpeedRatio] = []
    for baseline in names:
        timed = [p for p in pairs if all(_comparable(t, baseline) for t in p)]
        if not timed:
            continue
        shares += [_fast(timed, baseline, p, config) for p in config.ps] if baseline == names[0] else []
        if baseline != LIMIT:  # which nothing beats: every kernel would count as 1
            speeds += [_speed(timed, baseline, k, config) for k in config.ks if k <= least]
        common = _common(timed, baseline, config)
        speeds += [common] if common is not None else []
    return GroupComparison(name, len(pairs), len(set(families)), tuple(shares), tuple(speeds))


def _passes(pairs: Sequence[_Pair], families: Sequence[str], k: int, config: EstimateConfig) -> ShareDifference:
    sides = [
        [pass_at_k(len(t.outcomes), sum(o.correct for o in t.outcomes), k) for t in side]
        for side in zip(*pairs, strict=True)
    ]
    return _difference(f"pass@{k}", sides, families, config)


def _fast(pairs: Sequence[_Pair], baseline: str, p: float, config: EstimateConfig) -> ShareDifference:
    def share(task: TaskFacts) -> float:
        return fast_p([o.against(baseline) for o in task.outcomes], p)

    sides = [[share(pair.first) for pair in pairs], [share(pair.second) for pair in pairs]]
    return _difference(f"fast_{p:g} against {baseline}", sides, [pair.first.family for pair in pairs], config)


def _difference(
    name: str, sides: Sequence[Sequence[float]], families: Sequence[str], config: EstimateConfig
) -> ShareDifference:
    first, second = sides
    interval = share_difference(first, second, clusters=families, config=config.bootstrap)
    return ShareDifference(name, sum(first) / len(first), sum(second) / len(second), interval)


def _speed(pairs: Sequence[_Pair], baseline: str, k: int, config: EstimateConfig) -> SpeedRatio:
    def speed(task: TaskFacts) -> float:
        return log_speed_at_k([o.against(baseline) for o in task.outcomes], k)

    sides = [[speed(p.first) for p in pairs], [speed(p.second) for p in pairs]]
    return _ratio(f"speed@{k}", baseline, sides, pairs, config)


def _common(pairs: Sequence[_Pair], baseline: str, config: EstimateConfig) -> SpeedRatio | None:
    """Over tasks that both solve: the geometric mean of each one's correct trajectories."""
    solved = []
    logs: list[list[float]] = [[], []]
    for pair in pairs:
        means = [correct_only_geometric_mean([o.against(baseline) for o in t.outcomes]).value for t in pair]
        known = [m for m in means if m is not None]
        if len(known) == 2:
            solved.append(pair)
            for side, value in zip(logs, known, strict=True):
                side.append(log(value))
    return _ratio("common-correct mean", baseline, logs, solved, config) if solved else None


def _ratio(
    name: str, baseline: str, sides: Sequence[Sequence[float]], pairs: Sequence[_Pair], config: EstimateConfig
) -> SpeedRatio:
    first, second = sides
    families = [pair.first.family for pair in pairs]
    ratio = paired_difference(first, second, clusters=families, config=config.bootstrap).exponentiated()
    return SpeedRatio(name, baseline, len(pairs), exp(sum(first) / len(first)), exp(sum(second) / len(second)), ratio)


def _comparable(task: TaskFacts, baseline: str) -> bool:
    if task.unreached:
        return False
    correct = [o for o in task.outcomes if o.correct]
    return not correct or any(baseline in o.speedups for o in correct)


def comparison_document(found: Comparison) -> Document:
    """As sentences and tables."""
    lead = ["Differences are the first less the second, ratios the first over the second, paired by task, with 95 %"
            " intervals by bootstrap over tasks (over families where tasks share one)."]  # fmt: skip
    if found.left_out:
        lead.append(f"{found.left_out} tasks are finished in one evaluation only and are left out.")
    if found.changed:
        lead.append(
            f"{len(found.changed)} tasks are not the same in both and are left out: {', '.join(found.changed)}."
        )
    sections = [_section(found, group) for group in found.groups]
    if not any(g.tasks for g in found.groups):
        lead.append("They have no finished task in common.")
    return Document(f"{found.first} against {found.second}", tuple(lead), tuple(sections))


def _section(found: Comparison, group: GroupComparison) -> Section:
    head = ("", found.first, found.second, "difference, points")
    rows = tuple(
        (s.name, percent(s.first), percent(s.second), signed_percent_interval(s.difference)) for s in group.shares
    )
    tables = [Table(head, rows)] if rows else []
    text: tuple[str, ...] = ()
    if group.speeds:
        speeds = tuple(
            (f"{s.name} against {s.baseline}", str(s.tasks), times(s.first), times(s.second), times_interval(s.ratio))
            for s in group.speeds
        )
        tables.append(Table(("", "tasks", found.first, found.second, "ratio"), speeds))
        text = ("The common-correct mean is over tasks that both solve: of each one's correct trajectories.",)
    elif rows:
        text = ("Nothing was timed in common, so no speeds are compared.",)
    title = f"{group.group}: {group.tasks} tasks in common"
    title = title if group.families == group.tasks else f"{title}, of {group.families} families"
    return Section(title, 2, text, tuple(tables))
