"""Validates the ranker: every scorer on families it has not seen, beside its controls; tables and a picture of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaperf_agent.features.model import ORDER
from training.dataset.table import Table
from training.evaluation.intervals import Interval, bootstrap, paired_difference
from training.pairs import PairConfig, make_pairs
from training.rank_measures import MeasureConfig, Measures, Scores, measure, pair_accuracy, spearman, usable
from training.ranker import TrainConfig, columns, train

Scorer = Callable[[Table, Table], Scores]
"""Learns from the first table and scores the second."""


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """How a ranker is validated.

    Attributes:
        folds: Groups of families; each is scored by what was trained on the others.
        train: The ranker.
        measures: What counts.
        seed: Of the folds and of the shuffled labels.
    """

    folds: int = 8
    train: TrainConfig = field(default_factory=TrainConfig)
    measures: MeasureConfig = field(default_factory=MeasureConfig)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation found.

    Attributes:
        scorers: By name, on all usable tasks.
        kept: By name, on the tasks whose best variant reaches 1.5 times the naive speed.
        differences: Spearman's ρ of the ranker less that of each other scorer, paired by task.
        unseen_strategy: Pair accuracy of each learned scorer on pairs with a strategy, of a family, both unseen.
        single_edits: Per edit (and per series), how often its change of each feature goes with its change of time.
        rows, families: Of the data.
        data_digest: SHA-256 of the data.
        folds: How many.
        scores: Of the ranker, out of fold, for the picture; not part of the JSON.
    """

    scorers: dict[str, Measures]
    kept: dict[str, Measures]
    differences: dict[str, Interval]
    unseen_strategy: dict[str, Interval]
    single_edits: list[dict[str, Any]]
    rows: int
    families: int
    data_digest: str
    folds: int
    scores: Scores

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {
            "scorers": {name: asdict(m) for name, m in self.scorers.items()},
            "kept": {name: asdict(m) for name, m in self.kept.items()},
            "differences": {name: asdict(i) for name, i in self.differences.items()},
            "unseen_strategy": {name: asdict(i) for name, i in self.unseen_strategy.items()},
            "single_edits": self.single_edits,
            "rows": self.rows,
            "families": self.families,
            "data_digest": self.data_digest,
            "folds": self.folds,
        }


def learned(config: TrainConfig) -> Scorer:
    """A trained ranker."""

    def scorer(training: Table, test: Table) -> Scores:
        ranker = train(training, config).ranker
        return ranker.scores(columns(test, extended=config.extended))

    return scorer


def shuffled(config: TrainConfig, seed: int) -> Scorer:
    """The ranker trained on gains shuffled within each task: what its form alone gives."""

    def scorer(training: Table, test: Table) -> Scores:
        rng = np.random.default_rng(seed)
        gain, error = training.gain.copy(), training.error.copy()
        for rows in training.tasks():
            order = rng.permutation(rows)
            gain[rows], error[rows] = training.gain[order], training.error[order]
        return learned(config)(replace(training, gain=gain, error=error), test)

    return scorer


def inverted(config: TrainConfig) -> Scorer:
    """The ranker trained on the opposite order."""

    def scorer(training: Table, test: Table) -> Scores:
        return learned(config)(replace(training, gain=-training.gain), test)

    return scorer


def single_feature(training: Table, test: Table) -> Scores:
    """The feature, and its sign, that orders most pairs of the training tables rightly."""
    pairs = make_pairs(training, PairConfig("all"))
    best = (-1.0, 0, 1.0)
    for column in range(training.phi.shape[1]):
        for sign in (1.0, -1.0):
            apart = sign * (training.phi[pairs.better, column] - training.phi[pairs.worse, column])
            right = float((((apart > 0) + 0.5 * (apart == 0)) * pairs.weight).sum())
            best = max(best, (right, column, sign))
    return np.asarray(best[2] * test.phi[:, best[1]], dtype=np.float64)


def strategy_lookup(training: Table, test: Table) -> Scores:
    """The average gain of the strategy's label over its task's mean, on the training tables; 0 for unseen labels."""
    centred = training.gain.copy()
    for rows in training.tasks():
        centred[rows] -= training.gain[rows].mean()
    known = {label: float(centred[training.strategy == label].mean()) for label in np.unique(training.strategy)}
    return np.array([known.get(label, 0.0) for label in test.strategy], dtype=np.float64)


def fewest_kernels(training: Table, test: Table) -> Scores:
    """`kernels` alone: fewer is better."""
    return np.asarray(-test.phi[:, ORDER.index("kernels")], dtype=np.float64)


def shortest_source(training: Table, test: Table) -> Scores:
    """Source length alone: shorter is better."""
    return -test.length


def scorers(config: EvalConfig) -> dict[str, Scorer]:
    """Every scorer of the table, the ranker first."""
    own = config.train
    other: PairConfig = replace(own.pairs, kind="all" if own.pairs.kind == "quartiles" else "quartiles")
    return {
        "ranker": learned(own),
        "linear form": learned(replace(own, kind="linear")),
        f"pairs: {other.kind}": learned(replace(own, pairs=other)),
        "extended set": learned(replace(own, extended=True)),
        "best single feature": single_feature,
        "strategy lookup": strategy_lookup,
        "kernels alone": fewest_kernels,
        "source length": shortest_source,
        "labels shuffled": shuffled(own, config.seed),
        "labels inverted": inverted(own),
    }


def family_folds(table: Table, folds: int, seed: int) -> list[NDArray[np.bool_]]:
    """Masks of the rows of each fold's families."""
    names = np.unique(table.family)
    order = np.random.default_rng(seed).permutation(names.size)
    parts = np.array_split(names[order], min(folds, names.size))
    return [np.isin(table.family, part) for part in parts]


def evaluate(table: Table, config: EvalConfig | None = None, say: Callable[[str], None] = lambda text: None) -> Report:
    """Train and score out of fold, and measure.

    Args:
        table: The measured data.
        config: Numbers.
        say: Progress, one line per scorer.
    """
    config = config or EvalConfig()
    folds = family_folds(table, config.folds, config.seed)
    out: dict[str, Scores] = {}
    for name, scorer in scorers(config).items():
        scores = np.zeros(len(table))
        for fold in folds:
            scores[fold] = scorer(table.take(~fold), table.take(fold))
        out[name] = scores
        say(f"scored: {name}")
    tasks = usable(table, config.measures, kept=False)
    clusters = [str(table.family[rows[0]]) for rows in tasks]

    def rhos(name: str) -> list[float]:
        return [spearman(out[name][rows], table.gain[rows]) for rows in tasks]

    own = rhos("ranker")
    return Report(
        scorers={name: measure(table, scores, config.measures) for name, scores in out.items()},
        kept={name: measure(table, scores, config.measures, kept=True) for name, scores in out.items()},
        differences={
            name: paired_difference(own, rhos(name), clusters=clusters, config=config.measures.intervals)
            for name in out
            if name != "ranker" and tasks
        },
        unseen_strategy=_unseen_strategies(table, folds, config),
        single_edits=single_edits(table),
        rows=len(table),
        families=int(np.unique(table.family).size),
        data_digest=table.digest,
        folds=len(folds),
        scores=out["ranker"],
    )


def _unseen_strategies(table: Table, folds: list[NDArray[np.bool_]], config: EvalConfig) -> dict[str, Interval]:
    """Fold by fold, families and a part of the strategies are both held out; pairs with such a strategy count."""
    labels = np.unique(table.strategy)
    order = np.random.default_rng(config.seed + 1).permutation(labels.size)
    parts = np.array_split(labels[order], len(folds))
    found: dict[str, Interval] = {}
    learners = {"ranker": learned(config.train), "linear form": learned(replace(config.train, kind="linear")),
                "strategy lookup": strategy_lookup}  # fmt: skip
    for name, scorer in learners.items():
        values: list[float] = []
        clusters: list[str] = []
        for fold, part in zip(folds, parts, strict=True):
            unseen = np.isin(table.strategy, part)
            test = table.take(fold)
            scores = scorer(table.take(~fold & ~unseen), test)
            held = np.isin(test.strategy, part)

            def involved(
                better: NDArray[np.intp], worse: NDArray[np.intp], held: NDArray[np.bool_] = held
            ) -> NDArray[np.bool_]:
                return np.asarray(held[better] | held[worse], dtype=np.bool_)

            for rows in usable(test, config.measures, kept=False):
                value = pair_accuracy(test, scores, rows, config.measures, involved)
                if value is not None:
                    values.append(value)
                    clusters.append(str(test.family[rows[0]]))
        if values:
            found[name] = bootstrap(values, clusters=clusters, config=config.measures.intervals)
    return found


def single_edits(table: Table) -> list[dict[str, Any]]:
    """Whether a feature orders real times where one thing was edited: per label, over pairs of its parameters.

    Each row: the strategy, the feature that its edits change most, the share of pairs (near ties left out) in which a
    larger value is faster, and how many pairs there are.
    """
    found = []
    every = PairConfig("all")
    pairs = make_pairs(table, every)
    same = table.strategy[pairs.better] == table.strategy[pairs.worse]
    for label in np.unique(table.strategy):
        chosen = same & (table.strategy[pairs.better] == label)
        if np.count_nonzero(chosen) < 10:
            continue
        apart = table.phi[pairs.better[chosen]] - table.phi[pairs.worse[chosen]]
        for column in np.flatnonzero((apart != 0).mean(0) > 0.25):
            moved = apart[:, column][apart[:, column] != 0]
            share = float((moved > 0).mean())
            found.append(
                {"strategy": str(label), "feature": ORDER[column], "larger_is_faster": share, "pairs": int(moved.size)}
            )
    return found


def shown(interval: Interval | None) -> str:
    """An estimate and its interval, as a cell of a table."""
    if interval is None:
        return "–"
    if not np.isfinite(interval.low):
        return f"{interval.value:.2f}"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


HEADS = {
    "tau": "Kendall τ", "rho": "Spearman ρ", "accuracy": "pair accuracy", "within_strategy": "within one strategy",
    "regret": "top-1 regret (log2)", "gain_of_choice": "over random (log2)", "rerank": "best of 16 over random (log2)",
}  # fmt: skip
"""Of the columns of a table, by the names of `Measures`."""


def markdown(report: Report, intro: str | None = None) -> str:
    """The report as Markdown tables; `intro` instead of the usual first paragraph. What was not asked is left out."""
    columns_ = [f.name for f in fields(Measures) if f.name != "tasks"]
    usual = (
        f"{report.rows} variants of {report.families} families, {report.folds} folds by family; intervals are 95 %, "
        f"resampling families. Data `{report.data_digest[:12]}`."
    )
    parts = [intro or usual]
    for title, group in (("All tasks", report.scorers), ("Tasks whose best variant reaches 1.5× naive", report.kept)):
        tasks = next(iter(group.values())).tasks
        parts += ["", f"**{title}** ({tasks})", "", "| scorer | " + " | ".join(HEADS[c] for c in columns_) + " |"]
        parts.append("|---" * (len(columns_) + 1) + "|")
        parts += [
            f"| {name} | " + " | ".join(shown(getattr(m, c)) for c in columns_) + " |" for name, m in group.items()
        ]
    parts += ["", "**Spearman ρ of the ranker less that of**", ""]
    parts += [f"- {name}: {shown(interval)}" for name, interval in report.differences.items()]
    if report.unseen_strategy:
        parts += ["", "**Pair accuracy on unseen families and unseen strategies at once**", ""]
        parts += [f"- {name}: {shown(interval)}" for name, interval in report.unseen_strategy.items()]
    if report.single_edits:
        parts += ["", "**Does a feature order real times where one thing was changed?**", ""]
        parts += ["| strategy | feature | larger is faster | pairs |", "|---|---|---|---|"]
        parts += [
            f"| {e['strategy']} | {e['feature']} | {e['larger_is_faster']:.2f} | {e['pairs']} |"
            for e in report.single_edits
        ]
    return "\n".join(parts) + "\n"


def picture(table: Table, scores: Scores, *, width: int = 720, height: int = 480) -> str:
    """Score against measured speedup, each less its task's mean, as SVG: a dot per variant, coloured by its origin."""
    x, y = scores.copy(), table.gain.copy()
    for rows in table.tasks():
        x[rows] -= scores[rows].mean()
        y[rows] -= table.gain[rows].mean()
    limits = [max(1e-9, float(np.quantile(np.abs(v), 0.995))) if v.size else 1.0 for v in (x, y)]
    colours = {"generator": "#1b6ca8", "series": "#c9781d", "edit": "#7a3b8f", "hand": "#2f7d4f", "policy": "#b03a48"}
    left, bottom = 60, 45

    def at(value: float, limit: float, low: float, high: float) -> float:
        return low + (min(1.0, max(-1.0, value / limit)) + 1) / 2 * (high - low)

    dots = [
        f'<circle cx="{at(a, limits[0], left, width - 10):.1f}" cy="{at(-b, limits[1], 10, height - bottom):.1f}" '
        f'r="1.8" '
        f'fill="{colours.get(str(o), "#555")}" fill-opacity="0.45"/>'
        for a, b, o in zip(x, y, table.origin, strict=True)
    ]
    middle_x, middle_y = (left + width - 10) / 2, (10 + height - bottom) / 2
    legend = [
        f'<circle cx="{left + 14}" cy="{24 + 18 * i}" r="4" fill="{c}"/>'
        f'<text x="{left + 24}" y="{28 + 18 * i}">{o}</text>'
        for i, (o, c) in enumerate((o, c) for o, c in colours.items() if o in table.origin)
    ]
    frame = [
        f'<rect x="{left}" y="10" width="{width - 10 - left}" height="{height - bottom - 10}" '
        f'fill="none" stroke="#999"/>',
        f'<line x1="{left}" x2="{width - 10}" y1="{middle_y}" y2="{middle_y}" stroke="#ccc"/>',
        f'<line x1="{middle_x}" x2="{middle_x}" y1="10" y2="{height - bottom}" stroke="#ccc"/>',
        f'<text x="{middle_x}" y="{height - 10}" text-anchor="middle">score less its task\'s mean '
        f"(±{limits[0]:.2g})</text>",
        f'<text transform="translate(18 {middle_y}) rotate(-90)" text-anchor="middle">'
        f"log2 speedup less its task's mean "
        f"(±{limits[1]:.2g})</text>",
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join([*frame, *dots, *legend]) + "\n</svg>\n"
    )
