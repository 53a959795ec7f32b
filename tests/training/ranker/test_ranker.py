"""The ranker on data with a known structure: it finds it, controls do not, and what is saved is what was trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_data import synthetic

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.structural import load_ranker, save_ranker
from training.evaluation.intervals import BootstrapConfig
from training.pairs import PairConfig, make_pairs
from training.rank_measures import MeasureConfig, kendall, measure, ranks, spearman, usable
from training.ranker import TrainConfig, learnable, split_families, train, within_task_deviation
from training.ranker_eval import EvalConfig, Report, evaluate, family_folds, markdown, picture

QUICK = TrainConfig(epochs=120, patience=30)
MEASURES = MeasureConfig(draws=4, intervals=BootstrapConfig(resamples=300))


@pytest.fixture(scope="module")
def report() -> Report:
    return evaluate(synthetic(), EvalConfig(folds=3, train=QUICK, measures=MEASURES))


def test_pairs_are_of_one_task_from_its_quartiles_and_have_a_gap() -> None:
    table = synthetic(families=3)
    pairs = make_pairs(table, PairConfig("quartiles"))
    assert pairs.better.size
    assert (table.task[pairs.better] == table.task[pairs.worse]).all()
    assert (table.gain[pairs.better] - table.gain[pairs.worse] >= 0.15).all()
    for rows in table.tasks():
        low, high = np.quantile(table.gain[rows], [0.25, 0.75])
        mine = np.isin(pairs.better, rows)
        assert (table.gain[pairs.better[mine]] >= high).all()
        assert (table.gain[pairs.worse[mine]] <= low).all()


def test_every_pair_is_offered_and_tasks_weigh_equally() -> None:
    table = synthetic(families=3)
    table = table.take(np.arange(len(table))[:-6])  # the last task has fewer variants
    pairs = make_pairs(table, PairConfig("all"))
    assert pairs.better.size > make_pairs(table).better.size
    weights = [pairs.weight[table.task[pairs.better] == name].sum() for name in np.unique(table.task)]
    np.testing.assert_allclose(weights, 1 / 12)


def test_a_gap_below_two_standard_errors_is_no_pair() -> None:
    table = synthetic(families=2)
    noisy = replace(table, error=np.full(len(table), 100.0))
    assert make_pairs(table).better.size
    assert not make_pairs(noisy).better.size
    with pytest.raises(ConfigError, match="differ enough"):
        train(noisy, QUICK)


def test_rank_correlations_agree_with_hand_counts() -> None:
    a, b = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])
    assert kendall(a, b) == pytest.approx(4 / 6)
    assert spearman(a, b) == pytest.approx(1 - 6 * 2 / (4 * 15))
    np.testing.assert_allclose(ranks(np.array([5.0, 1, 5, 7])), [1.5, 0, 1.5, 3])
    assert spearman(np.zeros(4), b) == 0.0


def test_a_perfect_score_and_its_opposite_have_the_extreme_measures() -> None:
    table = synthetic(families=4)
    best, worst = measure(table, table.gain, MEASURES), measure(table, -table.gain, MEASURES)
    assert best.rho is not None
    assert worst.rho is not None
    assert best.regret is not None
    assert best.accuracy is not None
    assert worst.accuracy is not None
    assert (best.rho.value, worst.rho.value) == (pytest.approx(1), pytest.approx(-1))
    assert (best.accuracy.value, worst.accuracy.value, best.regret.value) == (1, 0, 0)
    assert best.rho.units == 4  # families are resampled, not tasks


def test_tasks_without_a_real_difference_do_not_count() -> None:
    table = synthetic(families=2)
    flat = replace(table, gain=table.gain * 1e-3)
    assert len(usable(table, MEASURES, kept=False)) == 8
    assert not usable(flat, MEASURES, kept=False)
    slow = replace(table, gain=table.gain - 100)
    assert not usable(slow, MEASURES, kept=True)


def test_splits_and_folds_are_by_family_and_disjoint() -> None:
    table = synthetic(families=9, tasks=2, variants=5)
    training, validation = split_families(list(table.family), 0.2, seed=3)
    assert not set(training) & set(validation)
    assert len(validation) == 2
    folds = family_folds(table, 4, seed=0)
    assert (np.sum(folds, axis=0) == 1).all()
    for fold in folds:
        assert not set(table.family[fold]) & set(table.family[~fold])
    with pytest.raises(ConfigError, match="two families"):
        split_families(["one"], 0.2, seed=0)


def test_the_ranker_finds_the_structure_and_controls_do_not(report: Report) -> None:
    def rho(name: str) -> float:
        found = report.scorers[name].rho
        assert found is not None
        return found.value

    assert rho("ranker") > 0.85
    assert rho("linear form") > 0.8
    assert rho("pairs: all") > 0.85
    assert rho("best single feature") < rho("ranker")
    assert abs(rho("labels shuffled")) < 0.5
    assert rho("labels inverted") < -0.8
    for name in ("kernels alone", "source length", "strategy lookup"):
        assert abs(rho(name)) < 0.2
    assert report.differences["strategy lookup"].low > 0
    assert report.unseen_strategy["ranker"].value > 0.85
    shuffled = report.scorers["labels shuffled"].rho
    assert shuffled is not None
    assert shuffled.low < rho("ranker")


def test_the_best_feature_and_the_edits_name_coalescing(report: Report) -> None:
    shares = [e["larger_is_faster"] for e in report.single_edits if e["feature"] == "coal"]
    assert shares
    assert min(shares) > 0.8


def test_the_report_is_shown_as_tables_and_as_plain_values(report: Report) -> None:
    import json

    text = markdown(report)
    assert "| ranker |" in text
    assert "Spearman ρ" in text
    again = json.loads(json.dumps(report.to_dict()))
    assert again["scorers"]["ranker"]["rho"]["value"] == report.scorers["ranker"].rho.value  # type: ignore[union-attr]
    assert "scores" not in again


def test_the_picture_has_a_dot_for_each_variant(report: Report) -> None:
    import xml.etree.ElementTree as ET

    table = synthetic()
    root = ET.fromstring(picture(table, report.scores))
    dots = [e for e in root.iter("{http://www.w3.org/2000/svg}circle") if e.get("r") == "1.8"]
    assert len(dots) == len(table)


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_an_artefact_scores_as_the_trained_one_and_is_scaled_on_validation(kind: str, tmp_path: Path) -> None:
    table = synthetic(families=10)
    made = train(table, replace(QUICK, kind=kind))  # type: ignore[arg-type]
    save_ranker(made.ranker, tmp_path)
    loaded = load_ranker(tmp_path)
    np.testing.assert_allclose(loaded.scores(table.phi), made.ranker.scores(table.phi))
    assert loaded.order == ORDER
    assert loaded.data_digest == table.digest
    held = table.take(np.isin(table.family, made.families[1]))
    assert within_task_deviation(loaded.scores(held.phi), held) == pytest.approx(1.0)
    shapes = [layer.weight.shape for layer in loaded.layers]
    assert shapes == ([(64, 11), (32, 64), (1, 32)] if kind == "mlp" else [(1, 11)])


def test_training_repeats_and_standardises_by_the_training_split_only() -> None:
    table = synthetic(families=8)
    first, again = train(table, QUICK), train(table, QUICK)
    np.testing.assert_array_equal(first.ranker.layers[0].weight, again.ranker.layers[0].weight)
    training = table.take(np.isin(table.family, first.families[0]))
    np.testing.assert_allclose(first.ranker.mean, training.phi.mean(0))
    assert not set(first.families[0]) & set(first.families[1])


def test_what_is_held_out_is_not_learned_from() -> None:
    table = synthetic(families=3, tasks=8)
    renamed = np.where(table.family == "f01", "nine_point", table.family)
    kept = learnable(replace(table, family=renamed))
    assert set(kept.family) == {"f00", "f02"}
    assert {name.rpartition("/")[2] for name in kept.task} == set("012345")
