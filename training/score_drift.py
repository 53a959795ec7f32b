"""Did a policy learn to please the score? Two policies' answers to the same tasks: scores beside what they stand for.

A policy that was trained with the structural score and has higher ones than a policy trained without it, but is no more
often right and no faster, has learned the score and not what it was to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cudaperf_agent.errors import ConfigError
from training.answer_groups import OWN, Group
from training.evaluation.intervals import BootstrapConfig, Interval, bootstrap, paired_difference, share
from training.ranker_eval import shown

_SHARE = "correct"


def _right_speed(group: Group) -> float:
    timed = group.speed[np.isfinite(group.speed)]
    return float(timed.mean()) if timed.size else np.nan


_MEASURES: Mapping[str, Callable[[Group], float]] = {
    "score": lambda group: float(group.scores[OWN].mean()),
    "score of the correct": lambda g: float(g.scores[OWN][g.correct].mean()) if g.correct.any() else np.nan,
    _SHARE: lambda group: float(group.correct.mean()),
    "log2 speed of the correct": _right_speed,
}
"""Means over one policy's answers to one task; NaN where they cannot tell."""


@dataclass(frozen=True, slots=True)
class Apart:
    """One measure of two policies; a task counts once, where both can tell.

    Attributes:
        first, second: Means over tasks.
        difference: First less second, paired by task.
        tasks: How many.
    """

    first: Interval
    second: Interval
    difference: Interval
    tasks: int


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found.

    Attributes:
        measures: By name; `None` where no task can tell.
        tasks, families: That both have answers to.
    """

    measures: dict[str, Apart | None]
    tasks: int
    families: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def score_drift(first: Sequence[Group], second: Sequence[Group], intervals: BootstrapConfig | None = None) -> Drift:
    """Compare two policies on the tasks that both have answers to.

    Args:
        first, second: Their answers, as `training.answer_groups.groups` makes them.
        intervals: The bootstrap, which resamples families.

    Raises:
        ConfigError: They share no task.
    """
    there = {group.task: group for group in second}
    pairs = [(group, there[group.task]) for group in first if group.task in there]
    if not pairs:
        raise ConfigError(
            "the two have no task in common that has answers enough", hint="compare phases of one suite, or --fewest"
        )
    found: dict[str, Apart | None] = {}
    for name, of in _MEASURES.items():
        values = [(of(a), of(b), a.family) for a, b in pairs]
        told = [v for v in values if np.isfinite(v[0]) and np.isfinite(v[1])]
        if not told:
            found[name] = None
            continue
        ours, theirs, families = zip(*told, strict=True)
        mean = share if name == _SHARE else bootstrap
        found[name] = Apart(
            mean(ours, clusters=families, config=intervals),
            mean(theirs, clusters=families, config=intervals),
            paired_difference(ours, theirs, clusters=families, config=intervals),
            len(told),
        )
    return Drift(found, len(pairs), len({a.family for a, _ in pairs}))


def drift_markdown(drift: Drift, first: str, second: str) -> str:
    """The comparison as Markdown; `first` and `second` say whose answers they are."""
    rows = [
        f"| {name} | {shown(a.first)} | {shown(a.second)} | {shown(a.difference)} | {a.tasks} |" if a is not None
        else f"| {name} | – | – | – | 0 |"
        for name, a in drift.measures.items()
    ]  # fmt: skip
    parts = [
        f"Answers to the same {drift.tasks} tasks of {drift.families} families; means over tasks, 95 % intervals that "
        "resample families.",
        "",
        f"| | {first} | {second} | difference | tasks |",
        "|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join(parts) + "\n"
