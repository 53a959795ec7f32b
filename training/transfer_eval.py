"""Validates the ranker on kernels that nobody wrote for it: trained on the families, tested on a transfer set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cudaperf_agent.errors import ConfigError
from training.dataset.table import Table
from training.evaluation.intervals import paired_difference
from training.rank_measures import Scores, measure, spearman, usable
from training.ranker_eval import EvalConfig, Report, family_folds, markdown, scorers

_FEWEST = 2  # families that are left to train on


def evaluate_transfer(
    training: Table,
    test: Table,
    config: EvalConfig | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Train every scorer on `training`, score `test`, and measure within its tasks.

    Families of `test` that are in `training`, too, are left out of training when they are scored, fold by fold. What
    needs pairs of one strategy has no value where every label occurs once a task.

    Args:
        training: Measured variants of the families.
        test: A transfer set; its families are the units of the intervals (of hand-written tasks, each task).
        config: Numbers.
        say: Progress, one line per scorer.

    Raises:
        ConfigError: Too few families are left to train on, or no task of `test` has enough kernels.
    """
    config = config or EvalConfig()
    shared = np.isin(np.unique(test.family), np.unique(training.family)).any()
    folds = family_folds(test, config.folds, config.seed) if shared else [np.ones(len(test), dtype=np.bool_)]
    tasks = usable(test, config.measures, kept=False)
    if not tasks:
        raise ConfigError(
            f"no task of the transfer set has {config.measures.fewest} timed kernels that differ in speed",
            hint="measure more of them",
        )
    out: dict[str, Scores] = {}
    for name, scorer in scorers(config).items():
        scores = np.zeros(len(test))
        for fold in folds:
            seen = training.take(~np.isin(training.family, np.unique(test.family[fold])))
            if np.unique(seen.family).size < _FEWEST:
                raise ConfigError("the transfer set has nearly all families that could be trained on")
            scores[fold] = scorer(seen, test.take(fold))
        out[name] = scores
        say(f"scored: {name}")
    clusters = [str(test.family[rows[0]]) for rows in tasks]
    rhos = {name: [spearman(scores[rows], test.gain[rows]) for rows in tasks] for name, scores in out.items()}
    return Report(
        scorers={name: measure(test, scores, config.measures) for name, scores in out.items()},
        kept={name: measure(test, scores, config.measures, kept=True) for name, scores in out.items()},
        differences={
            name: paired_difference(rhos["ranker"], rhos[name], clusters=clusters, config=config.measures.intervals)
            for name in out
            if name != "ranker"
        },
        unseen_strategy={},
        single_edits=[],
        rows=len(test),
        families=int(np.unique(test.family).size),
        data_digest=test.digest,
        folds=len(folds),
        scores=out["ranker"],
    )


def transfer_markdown(report: Report, training: Table, name: str) -> str:
    """The report as Markdown tables.

    Args:
        report: From `evaluate_transfer`.
        training: What was trained on.
        name: What the test set is, in words.
    """
    intro = (
        f"{report.rows} kernels of {report.families} {name}, scored by what was trained on {len(training)} variants of "
        f"{np.unique(training.family).size} families; intervals are 95 %, resampling the {name}. "
        f"Data `{report.data_digest[:12]}`, trained on `{training.digest[:12]}`."
    )
    return markdown(report, intro)
