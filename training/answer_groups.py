"""The answers of policies to each task, with what choosers think of them: what `rerank` and `score_drift` look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.extract import extract
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.presets import ROBUST
from cudaperf_agent.reward.structural import Ranker
from graph.sources import source_key
from training.dataset.sampled import Candidate
from training.evaluation.intervals import BootstrapConfig

Scores = NDArray[np.float64]
OWN = "score"
_NOT_COMPILED = frozenset({Status.NO_CODE, Status.COMPILE_ERROR, Status.UNSUPPORTED, "declined"})


@dataclass(frozen=True, slots=True)
class RerankConfig:
    """How choosers are compared.

    Attributes:
        of: Answers of a task that are chosen among: the first so many of a phase.
        fewest: Tasks with fewer answers with code are left out.
        phases: Patterns (``both/step-*``) of the phases that count; all where empty.
        together: Choose among the answers of all those phases, not of the one that has most.
        compiled: Leave out what did not compile, which needs no score to be told from the rest.
        distinct: Of answers that differ in layout and comments only one counts, one with a time if there is one.
        shuffles: Permutations of the scores within each task.
        seed: Of them.
        intervals: The bootstrap.
    """

    of: int = 16
    fewest: int = 4
    phases: tuple[str, ...] = ()
    together: bool = False
    compiled: bool = False
    distinct: bool = False
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
        kind: Equal for answers of equal features, shape (answers,); where left out, all differ. Answers repeat each
            other, and what is the same twice is no second witness: shuffles give all of a kind one score.
    """

    task: str
    family: str
    correct: NDArray[np.bool_]
    value: Scores
    speed: Scores
    scores: dict[str, Scores]
    kind: NDArray[np.intp] | None = None


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
        config: How many, and of which phases.

    Raises:
        ConfigError: No first turn is of a phase that counts.
    """
    config = config or RerankConfig()
    firsts = [c for c in candidates if c.turn == 0]
    wanted = [c for c in firsts if not config.phases or any(fnmatchcase(c.phase, p) for p in config.phases)]
    if config.phases and not wanted:
        there = ", ".join(sorted({c.phase or "one without a name" for c in firsts})) or "none"
        raise ConfigError(f"no first answer is of {' or '.join(config.phases)}", hint=f"phases: {there}")
    by_phase: dict[str, dict[str, list[Candidate]]] = {}
    for candidate in wanted:
        by_phase.setdefault(candidate.task, {}).setdefault(candidate.phase, []).append(candidate)
    found = []
    for task, phases in sorted(by_phase.items()):
        chosen = list(phases.values()) if config.together else [max(phases.values(), key=len)]
        answers = [a for phase in chosen for a in phase[: config.of] if a.source is not None]
        if config.compiled:
            answers = [a for a in answers if a.status not in _NOT_COMPILED]
        answers = _distinct(answers) if config.distinct else answers
        if len(answers) < config.fewest:
            continue
        plain = [a.naive for a in answers if a.naive is not None]
        base = median(plain) if plain else (naive or {}).get(task)
        found.append(_group(task, answers, ranker, base))
    return found


def _distinct(answers: Sequence[Candidate]) -> list[Candidate]:
    found: dict[str, Candidate] = {}
    for answer in answers:
        key = source_key(answer.source or "")
        if key not in found or (answer.times() and not found[key].times()):
            found[key] = answer
    return list(found.values())


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
        "score, clipped": np.clip(own, -ROBUST.structural_clip, ROBUST.structural_clip),
        "shortest source": -np.array([len(a.source or "") for a in answers], dtype=np.float64),
        "fewest kernels": -phi[:, ORDER.index("kernels")],
    }
    value = np.where(correct, np.maximum(speed, 0.0), 0.0)
    kind = np.unique(phi, axis=0, return_inverse=True)[1].reshape(-1)
    return Group(task, answers[0].unit, correct, value, speed, scores, kind)
