"""Is the structural score worth anything as a chooser among a policy's own answers? On stored verdicts, before RL.

Of the answers that a policy gave to one task, a chooser takes the one that its score puts first, without a verdict;
what it got is compared with what a random choice gets on average. Answers without code are chosen by nobody. Three
things are asked of a choice: whether it is correct; the log2 of its speed over plain CUDA, 0 where it is wrong or
slower (a user keeps what there was); and, among correct answers alone, how much faster it is than their average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.extract import extract
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.presets import ROBUST
from cudaperf_agent.reward.structural import Ranker
from training.dataset.sampled import Candidate
from training.evaluation.intervals import (
    BootstrapConfig,
    Interval,
    bootstrap,
    paired_difference,
    share,
    share_difference,
)
from training.ranker_eval import shown

Scores = NDArray[np.float64]
OWN, RANDOM, BEST = "score", "random choice", "best possible"


@dataclass(frozen=True, slots=True)
class RerankConfig:
    """How choosers are compared.

    Attributes:
        of: Answers of a task that are chosen among: the first so many of a phase.
        fewest: Tasks with fewer answers with code are left out.
        shuffles: Permutations of the scores within each task.
        seed: Of them.
        intervals: The bootstrap.
    """

    of: int = 16
    fewest: int = 4
    shuffles: int = 1000
    seed: int = 0
    intervals: BootstrapConfig = field(default_factory=lambda: BootstrapConfig(resamples=4000))


@dataclass(frozen=True, slots=True)
class Group:
    """The answers of a policy to one task that have code.

    Attributes:
        task, family: Of it.
        correct: Of each answer, shape (answers,).
        value: log2 of its speed over plain CUDA, at least 0, and 0 where it is wrong; NaN where correct and not timed.
        speed: log2 of its speed, NaN where it is wrong or not timed.
        scores: By chooser, shape (answers,) each.
    """

    task: str
    family: str
    correct: NDArray[np.bool_]
    value: Scores
    speed: Scores
    scores: dict[str, Scores]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a chooser gets, over tasks; `None` where no task can tell.

    Attributes:
        correct: Share of correct choices.
        value: Mean of `Group.value` of the choices.
        speed: Mean of log2 speed of the choice among correct, timed answers, less their average.
    """

    correct: Interval | None
    value: Interval | None
    speed: Interval | None


@dataclass(frozen=True, slots=True)
class Reranking:
    """What the study found.

    Attributes:
        choosers: By name; `RANDOM` is the average of each task, the best possible choice is there, too.
        differences: The score less each other chooser, paired by task.
        beaten: By measure, the share of shuffles of the scores that do at least as well: a one-sided p-value.
        tasks, families, answers, timed: How many.
    """

    choosers: dict[str, Chosen]
    differences: dict[str, Chosen]
    beaten: dict[str, float | None]
    tasks: int
    families: int
    answers: int
    timed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return asdict(self)


def groups(
    candidates: Sequence[Candidate],
    ranker: Ranker,
    naive: Mapping[str, float] | None = None,
    config: RerankConfig | None = None,
) -> list[Group]:
    """Answers by task, of the phase that has most of them, with the choosers' scores.

    Args:
        candidates: First turns count, and of those the ones with code.
        ranker: The score.
        naive: Seconds of plain CUDA by task, where an answer does not say.
        config: How many.
    """
    config = config or RerankConfig()
    by_phase: dict[str, dict[str, list[Candidate]]] = {}
    for candidate in candidates:
        if candidate.turn == 0:
            by_phase.setdefault(candidate.task, {}).setdefault(candidate.phase, []).append(candidate)
    found = []
    for task, phases in sorted(by_phase.items()):
        answers = max(phases.values(), key=len)[: config.of]
        answers = [a for a in answers if a.source is not None]
        if len(answers) < config.fewest:
            continue
        plain = [a.naive for a in answers if a.naive is not None]
        base = median(plain) if plain else (naive or {}).get(task)
        found.append(_group(task, answers, ranker, base))
    return found


def _group(task: str, answers: Sequence[Candidate], ranker: Ranker, base: float | None) -> Group:
    correct = np.array([a.timeable for a in answers])
    times = [median(a.times()) if a.times() and a.timeable else np.nan for a in answers]
    speed = np.array([np.log2(base / t) if base else np.nan for t in times])
    texts = {a.source or "": None for a in answers}
    vectors = {text: extract(text).vector for text in texts}
    phi = np.array([vectors[a.source or ""] for a in answers], dtype=np.float64)
    own = ranker.scores(phi)
    scores = {
        OWN: own,
        "R_str of `robust`": np.clip(own, -ROBUST.structural_clip, ROBUST.structural_clip),
        "shortest source": -np.array([len(a.source or "") for a in answers], dtype=np.float64),
        "fewest kernels": -phi[:, ORDER.index("kernels")],
    }
    value = np.where(correct, np.maximum(speed, 0.0), 0.0)
    return Group(task, task.rpartition("/")[0] or task, correct, value, speed, scores)


def _pick(scores: Scores, values: Scores) -> float:
    """The value of the first by score; of ties their average."""
    return float(values[scores == scores.max()].mean())


class _Told(NamedTuple):
    """What one task tells of one measure: the answers that count, and the values of all."""

    group: Group
    counts: NDArray[np.bool_]
    values: Scores


def _told(measure: str, group: Group) -> _Told | None:
    """`None` where the task cannot tell."""
    every = np.ones(group.correct.size, dtype=np.bool_)
    if measure == "correct":
        return _Told(group, every, group.correct.astype(np.float64))
    if measure == "value":
        return _Told(group, every, group.value) if np.isfinite(group.value).all() else None
    counts = np.isfinite(group.speed)
    if np.count_nonzero(counts) < 2:
        return None
    return _Told(group, counts, group.speed - group.speed[counts].mean())


_MEASURES = ("correct", "value", "speed")
_SHARES = frozenset({"correct"})


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
    for measure in _MEASURES:
        told = [t for t in (_told(measure, group) for group in found) if t is not None]
        picks = {n: [_choice(n, t) for t in told] for n in names}
        families = [t.group.family for t in told]
        mean = share if measure in _SHARES else bootstrap
        for name in names:
            one = mean(picks[name], clusters=families, config=config.intervals) if told else None
            columns[name][measure] = one
            if name != OWN:
                # What chance gets is no 0 or 1, so neither is the difference.
                apart_of = share_difference if measure in _SHARES and name != RANDOM else paired_difference
                pair = apart_of(picks[OWN], picks[name], clusters=families, config=config.intervals) if told else None
                apart[name][measure] = pair
        beaten[measure] = _beaten(told, float(np.mean(picks[OWN])), config.shuffles, rng) if told else None
    return Reranking(
        {n: Chosen(**c) for n, c in columns.items()},
        {n: Chosen(**c) for n, c in apart.items()},
        beaten,
        len(found),
        len({g.family for g in found}),
        sum(g.correct.size for g in found),
        sum(int(np.isfinite(g.speed).sum()) for g in found),
    )


def _choice(name: str, told: _Told) -> float:
    kept = told.values[told.counts]
    if name == RANDOM:
        return float(kept.mean())
    if name == BEST:
        return float(kept.max())
    return _pick(told.group.scores[name][told.counts], kept)


def _beaten(told: Sequence[_Told], own: float, shuffles: int, rng: np.random.Generator) -> float:
    """The share of shuffles that do as well, one added to both, so that it is never 0."""
    better = 1
    for _ in range(shuffles):
        total = sum(_pick(rng.permutation(t.group.scores[OWN][t.counts]), t.values[t.counts]) for t in told)
        better += total / len(told) >= own - 1e-12
    return better / (shuffles + 1)


def reranking_markdown(result: Reranking) -> str:
    """The study as Markdown."""
    head = "correct | log2 speed, at least 0 | log2 speed over the mean of the correct |"

    def rows(group: Mapping[str, Chosen]) -> list[str]:
        return [f"| {n} | {shown(c.correct)} | {shown(c.value)} | {shown(c.speed)} |" for n, c in group.items()]

    shares = [f"{p:.3f}" if (p := result.beaten[measure]) is not None else "–" for measure in _MEASURES]
    parts = [
        f"{result.answers} answers with code to {result.tasks} tasks of {result.families} families, {result.timed} of "
        "them correct and timed; intervals are 95 %, resampling families.",
        "",
        f"| chooser | {head}",
        "|---|---|---|---|",
        *rows(result.choosers),
        "",
        f"| the score less … | {head}",
        "|---|---|---|---|",
        *rows(result.differences),
        f"| shuffled scores do as well (share) | {' | '.join(shares)} |",
    ]
    return "\n".join(parts) + "\n"
