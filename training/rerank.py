"""Is the structural score worth anything as a chooser among a policy's own answers? On stored verdicts, before RL.

Of the answers that a policy gave to one task, a chooser takes the one that its score puts first, without a verdict;
what it got is compared with what a random choice gets on average. Answers without code are chosen by nobody. Three
things are asked of a choice: whether it is correct; the log2 of its speed over plain CUDA, 0 where it is wrong or
slower (a user keeps what there was); and, among correct answers alone, how much faster it is than their average. A
fourth looks at all answers, and so sees more of few tasks: how often a right one is ahead of a wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from training.answer_groups import OWN, Group, RerankConfig, Scores
from training.evaluation.intervals import (
    BootstrapConfig,
    Interval,
    bootstrap,
    paired_difference,
    share,
    share_difference,
)
from training.ranker_eval import shown

RANDOM, BEST = "random choice", "best possible"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a chooser gets, over tasks; `None` where no task can tell.

    Attributes:
        correct: Share of correct choices.
        value: Mean of `Group.value` of the choices.
        speed: Mean of log2 speed of the choice among correct, timed answers, less their average.
        order: Share of pairs of a right and a wrong answer in which the right one is ahead; of ties half.
    """

    correct: Interval | None
    value: Interval | None
    speed: Interval | None
    order: Interval | None


@dataclass(frozen=True, slots=True)
class Reranking:
    """What the study found.

    Attributes:
        choosers: By name; `RANDOM` is the average of each task, the best possible choice is there, too.
        differences: The score less each other chooser, paired by task.
        beaten: By measure, the share of shuffles of the scores that do at least as well: a one-sided p-value. What is
            shuffled are the scores of the kinds of answers within each task.
        telling: By measure, the tasks in which it depends on the choice.
        tasks, families, answers, timed: How many.
    """

    choosers: dict[str, Chosen]
    differences: dict[str, Chosen]
    beaten: dict[str, float | None]
    telling: dict[str, int]
    tasks: int
    families: int
    answers: int
    timed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def _pick(scores: Scores, values: Scores) -> float:
    """The value of the first by score; of ties their average."""
    return float(values[scores == scores.max()].mean())


def _order(scores: Scores, correct: Scores) -> float:
    """The share of pairs of a right and a wrong one with the right one ahead; of ties half."""
    right, wrong = scores[correct > 0][:, None], scores[correct == 0][None, :]
    return float(((right > wrong) + 0.5 * (right == wrong)).mean())


class _Told(NamedTuple):
    """What one task tells of one measure: the answers that count, and the values of all."""

    measure: str
    group: Group
    counts: NDArray[np.bool_]
    values: Scores


def _told(measure: str, group: Group) -> _Told | None:
    """`None` where the task cannot tell."""
    every = np.ones(group.correct.size, dtype=np.bool_)
    if measure == "correct":
        return _Told(measure, group, every, group.correct.astype(np.float64))
    if measure == "order":
        mixed = group.correct.any() and not group.correct.all()
        return _Told(measure, group, every, group.correct.astype(np.float64)) if mixed else None
    if measure == "value":  # nan where a correct one was not timed
        return _Told(measure, group, every, group.value) if np.isfinite(group.value).all() else None
    counts = np.isfinite(group.speed)
    if np.count_nonzero(counts) < 2:
        return None
    return _Told(measure, group, counts, group.speed - group.speed[counts].mean())


_MEASURES = ("correct", "value", "speed", "order")
_SHARES = frozenset({"correct", "order"})
_DIGITS = 9


def study(found: Sequence[Group], config: RerankConfig | None = None) -> Reranking:
    """Compare the choosers.

    Raises:
        ConfigError: No task has enough answers.
    """
    config = config or RerankConfig()
    if not found:
        raise ConfigError(
            f"no task has {config.fewest} answers with code to choose among",
            hint="sample several answers a task: training.sft.evaluate does",
        )
    rng = np.random.default_rng(config.seed)
    names = [OWN, *(n for n in found[0].scores if n != OWN), RANDOM, BEST]
    columns: dict[str, dict[str, Interval | None]] = {n: {} for n in names}
    apart: dict[str, dict[str, Interval | None]] = {n: {} for n in names if n != OWN}
    beaten: dict[str, float | None] = {}
    telling: dict[str, int] = {}
    for measure in _MEASURES:
        # Without any time the tasks with no correct answer would be left, and tell of a speed of 0.
        asked = found if measure not in ("value", "speed") or any(np.isfinite(g.speed).any() for g in found) else ()
        told = [t for t in (_told(measure, group) for group in asked) if t is not None]
        telling[measure] = sum(bool(np.ptp(t.values[t.counts]) > 0) for t in told)
        picks = {n: [_choice(n, t) for t in told] for n in names}
        families = [t.group.family for t in told]
        mean = share if measure in _SHARES else bootstrap
        for name in names:
            one = mean(picks[name], clusters=families, config=config.intervals) if told else None
            columns[name][measure] = one
            if name != OWN:
                apart[name][measure] = _apart(measure, name, picks, families, config.intervals) if told else None
        beaten[measure] = _beaten(told, float(np.mean(picks[OWN])), config.shuffles, rng) if told else None
    return Reranking(
        {n: Chosen(**c) for n, c in columns.items()},
        {n: Chosen(**c) for n, c in apart.items()},
        beaten,
        telling,
        len(found),
        len({g.family for g in found}),
        sum(g.correct.size for g in found),
        sum(int(np.isfinite(g.speed).sum()) for g in found),
    )


def _apart(
    measure: str, name: str, picks: Mapping[str, list[float]], families: list[str], config: BootstrapConfig
) -> Interval:
    """The score less another chooser."""
    if name == RANDOM and measure == "order":  # which is one half everywhere
        own = share(picks[OWN], clusters=families, config=config)
        return replace(own, value=own.value - 0.5, low=own.low - 0.5, high=own.high - 0.5)
    # What chance gets is no 0 or 1, so neither is the difference.
    difference = share_difference if measure in _SHARES and name != RANDOM else paired_difference
    return difference(picks[OWN], picks[name], clusters=families, config=config)


def _choice(name: str, told: _Told) -> float:
    kept = told.values[told.counts]
    if name == RANDOM:
        return 0.5 if told.measure == "order" else round(float(kept.mean()), _DIGITS)
    if name == BEST:
        return round(float(kept.max()), _DIGITS)
    return _worth(told, told.group.scores[name][told.counts])


def _worth(told: _Told, scores: Scores) -> float:
    """Of scores of the answers that count."""
    # Rounding errors of what is the same would be told from each other by the intervals.
    return round((_order if told.measure == "order" else _pick)(scores, told.values[told.counts]), _DIGITS)


def _beaten(told: Sequence[_Told], own: float, shuffles: int, rng: np.random.Generator) -> float:
    """The share of shuffles that do as well, one added to both, so that it is never 0."""
    kinds = [_kinds(t) for t in told]
    better = 1
    for _ in range(shuffles):
        drawn = (rng.permutation(scores)[kind] for scores, kind in kinds)
        total = sum(_worth(t, scores) for t, scores in zip(told, drawn, strict=True))
        better += total / len(told) >= own - 1e-9
    return better / (shuffles + 1)


def _kinds(told: _Told) -> tuple[Scores, NDArray[np.intp]]:
    """The score of each kind of answer that counts, and the kind of each."""
    group = told.group
    every = np.arange(group.correct.size) if group.kind is None else group.kind
    _, first, kind = np.unique(every[told.counts], return_index=True, return_inverse=True)
    return group.scores[OWN][told.counts][first], kind


def reranking_markdown(result: Reranking) -> str:
    """The study as Markdown."""
    head = "correct | log2 speed, at least 0 | log2 speed over the mean of the correct | right ahead of wrong |"

    def rows(group: Mapping[str, Chosen]) -> list[str]:
        return [f"| {n} | {' | '.join(shown(getattr(c, m)) for m in _MEASURES)} |" for n, c in group.items()]

    shares = [f"{p:.3f}" if (p := result.beaten[measure]) is not None else "–" for measure in _MEASURES]
    parts = [
        f"{result.answers} answers with code to {result.tasks} tasks of {result.families} families, {result.timed} of "
        "them correct and timed; intervals are 95 %, resampling families.",
        "",
        f"| chooser | {head}",
        "|---|---|---|---|---|",
        *rows(result.choosers),
        "",
        f"| the score less … | {head}",
        "|---|---|---|---|---|",
        *rows(result.differences),
        f"| shuffled scores do as well (share) | {' | '.join(shares)} |",
        f"| tasks where it depends on the choice | {' | '.join(str(result.telling[m]) for m in _MEASURES)} |",
    ]
    return "\n".join(parts) + "\n"
