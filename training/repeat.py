"""How repeatable the times of the data set are: a second measurement beside the first, overall and within tasks.

A difference is log2 of the second time over the first. Within a task it is taken less the task's median difference:
what all of a task's variants share (another device, other clocks) changes no order, and the ranker predicts orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.dataset.again import Twice
from training.pairs import task_pairs
from training.rank_measures import MeasureConfig


@dataclass(frozen=True, slots=True)
class RepeatConfig:
    """Numbers of the comparison.

    Attributes:
        measures: Which pairs are near ties.
        edges: Seconds of the first measurement that divide variants by size.
        fewest: Strategies, families and tasks with fewer variants are not listed by themselves.
        listed: How many of those that differ most are listed.
        errors: Standard errors of the samples beyond which a difference within a task is more than they say.
    """

    measures: MeasureConfig = field(default_factory=MeasureConfig)
    edges: tuple[float, ...] = (30e-6, 100e-6, 1e-3, 10e-3)
    fewest: int = 10
    listed: int = 8
    errors: float = 2.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Differences within tasks of some variants, absolute, in log2.

    Attributes:
        name: Of the group.
        variants: How many.
        half, nine_tenths, most: Their quantiles 0.5, 0.9 and 0.95.
        beyond: Share of them that is more than `RepeatConfig.errors` standard errors of the samples.
    """

    name: str
    variants: int
    half: float
    nine_tenths: float
    most: float
    beyond: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """How repeatable the times are.

    Attributes:
        variants, tasks, families: Correct in both measurements.
        matched: Variants in both, correct or not.
        shift: Quantiles 0.05, 0.5 and 0.95 of the differences, log2 of second over first.
        task_shift: The same of the tasks' median differences.
        within: Of all variants.
        by_time: By the first measurement's time.
        by_strategy, by_family, by_task: Those that differ most, and of families the others together.
        pairs: Pairs of one task that are no near ties in the first measurement.
        reversed, tied, kept: Shares of them that the second has the other way round and no near tie, as a near tie, and
            the same way round.
        changed: Verdicts that changed, as ``task, first → second`` with how many, and the range of the errors in
            budgets then and now.
    """

    variants: int
    tasks: int
    families: int
    matched: int
    shift: tuple[float, float, float]
    task_shift: tuple[float, float, float]
    within: Spread
    by_time: tuple[Spread, ...]
    by_strategy: tuple[Spread, ...]
    by_family: tuple[Spread, ...]
    by_task: tuple[Spread, ...]
    pairs: int
    reversed: float
    tied: float
    kept: float
    changed: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def repeatability(both: Twice, config: RepeatConfig | None = None) -> Repeat:
    """Compare the two measurements."""
    config = config or RepeatConfig()
    apart = np.log2(both.again / both.seconds)
    within = apart.copy()
    shifts = []
    for rows in both.first.tasks():
        shifts.append(float(np.median(apart[rows])))
        within[rows] -= shifts[-1]
    size = np.abs(within)
    beyond = size > config.errors * np.hypot(both.first.error, both.second.error)

    def spread(name: str, chosen: NDArray[np.bool_]) -> Spread:
        half, nine_tenths, most = (float(q) for q in np.quantile(size[chosen], [0.5, 0.9, 0.95]))
        return Spread(name, int(chosen.sum()), half, nine_tenths, most, float(beyond[chosen].mean()))

    def largest(labels: NDArray[np.str_]) -> tuple[Spread, ...]:
        names, counts = np.unique(labels, return_counts=True)
        found = [spread(str(name), labels == name) for name in names[counts >= config.fewest]]
        return tuple(sorted(found, key=lambda s: -s.nine_tenths)[: config.listed])

    families = largest(both.first.family)
    others = ~np.isin(both.first.family, [s.name for s in families])
    limits = (0.0, *config.edges, np.inf)
    slots = [(low, high, (both.seconds >= low) & (both.seconds < high)) for low, high in pairwise(limits)]
    same, tied, other = _pairs(both, config)
    pairs = same + tied + other
    return Repeat(
        variants=len(both.first),
        tasks=len(shifts),
        families=int(np.unique(both.first.family).size),
        matched=both.matched,
        shift=_quantiles(apart),
        task_shift=_quantiles(shifts),
        within=spread("all", np.ones(len(both.first), dtype=np.bool_)),
        by_time=tuple(spread(_between(low, high), chosen) for low, high, chosen in slots if chosen.any()),
        by_strategy=largest(both.first.strategy),
        by_family=(*families, spread("the others", others)) if others.any() else families,
        by_task=largest(both.first.task),
        pairs=pairs,
        reversed=other / max(1, pairs),
        tied=tied / max(1, pairs),
        kept=same / max(1, pairs),
        changed=_changes(both.changed),
    )


def _quantiles(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return float(low), float(middle), float(high)


def _between(low: float, high: float) -> str:
    def told(seconds: float) -> str:
        return f"{seconds * 1e6:g} µs" if seconds < 1e-3 else f"{seconds * 1e3:g} ms"

    if low == 0:
        return f"under {told(high)}"
    return f"from {told(low)}" if np.isinf(high) else f"{told(low)} to {told(high)}"


def _pairs(both: Twice, config: RepeatConfig) -> tuple[int, int, int]:
    """Pairs apart in the first measurement: in the second the same way round, near ties, the other way round."""
    same = other = total = 0
    for rows in both.first.tasks():
        one, two = (
            set(zip(found.better.tolist(), found.worse.tolist(), strict=True))
            for found in (task_pairs(t, rows, config.measures.pairs) for t in (both.first, both.second))
        )
        total += len(one)
        same += len(one & two)
        other += sum((worse, better) in two for better, worse in one)
    return same, total - same - other, other


def _changes(changed: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    counted = Counter((c["task"], c["first"], c["second"]) for c in changed)
    found = []
    for (task, first, second), variants in sorted(counted.items()):
        mine = [c for c in changed if (c["task"], c["first"], c["second"]) == (task, first, second)]
        worst = {
            name: max((c[name] for c in mine if c[name] is not None), default=None)
            for name in ("worst_first", "worst_second")
        }
        found.append({"task": task, "first": first, "second": second, "variants": variants, **worst})
    return tuple(found)


def repeat_markdown(found: Repeat) -> str:
    """The comparison as Markdown."""
    low, middle, high = found.shift
    task_low, task_middle, task_high = found.task_shift
    lines = [
        f"{found.matched} variants were measured twice; {found.variants} of {found.tasks} tasks and {found.families} "
        f"families are correct and timed in both. log2 of second over first: median {middle:.3f}, 90 % from {low:.3f} "
        f"to {high:.3f}; medians of the tasks: {task_middle:.3f}, {task_low:.3f} to {task_high:.3f}.",
        "",
        f"Of {found.pairs} pairs of one task that are no near ties in the first measurement, {found.kept:.1%} are the "
        f"same way round in the second, {found.tied:.1%} near ties and {found.reversed:.1%} the other way round.",
        "",
        "| differences within tasks, log2 | variants | median | 90 % within | 95 % within | beyond the samples |",
        "|---|---|---|---|---|---|",
    ]
    titles = {"strategy ": found.by_strategy, "family ": found.by_family, "task ": found.by_task}
    for title, group in (("", (found.within, *found.by_time)), *titles.items()):
        lines += [
            f"| {title}{s.name} | {s.variants} | {s.half:.3f} | {s.nine_tenths:.3f} | {s.most:.3f} | {s.beyond:.2f} |"
            for s in group
        ]
    lines += ["", "Verdicts that changed:" if found.changed else "No verdict changed."]
    for c in found.changed:
        worst = [f"{c[n]:.2f}" if c[n] is not None else "–" for n in ("worst_first", "worst_second")]
        lines.append(
            f"- {c['task']}: {c['variants']} from {c['first']} to {c['second']}; largest error {worst[0]}, then "
            f"{worst[1]} of the budget"
        )
    return "\n".join(lines) + "\n"
