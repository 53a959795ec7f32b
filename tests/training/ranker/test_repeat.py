"""Times measured twice: how far apart, how much order they share, and what share of that a ranker reaches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_data import synthetic
from test_ranker_commands import parquet

from cudaperf_agent.cli.main import main
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.reward.structural import Layer, Ranker
from training.ceiling import LOOKUP, OUT_OF_FOLD, REPEAT, SAME_PHI, TRAINED, ceiling, ceiling_markdown
from training.dataset.again import DIGITS, Twice
from training.dataset.table import Table, read_rows
from training.rank_measures import MeasureConfig
from training.ranker import TrainConfig
from training.ranker_eval import EvalConfig
from training.repeat import RepeatConfig, repeat_markdown, repeatability

COAL = ORDER.index("coal")
CONFIG = EvalConfig(folds=4, train=TrainConfig(kind="linear"))


def twice(first: Table, second: Table, changed: tuple[dict[str, object], ...] = ()) -> Twice:
    seconds, again = 1e-5 * 2**-first.gain, 1e-5 * 2**-second.gain
    return Twice(first, np.arange(len(first)), first, second, seconds, again, len(first), changed)


def hand_made(first: list[float], second: list[float], *, families: int = 6, tasks: int = 2) -> Twice:
    """Every task has these gains; `coal` is the gain in the second measurement."""
    table = synthetic(families=families, tasks=tasks, variants=len(first))
    phi = table.phi.copy()
    phi[:, COAL] = np.tile(second, families * tasks)
    table = replace(table, phi=phi, gain=np.tile(first, families * tasks), error=np.zeros(len(table)))
    return twice(table, replace(table, gain=phi[:, COAL]))


def reading(feature: int, sign: float = 1.0) -> Ranker:
    """A ranker whose score is one feature."""
    weight = np.zeros((1, len(ORDER)))
    weight[0, feature] = sign
    zeros = np.zeros(len(ORDER))
    return Ranker("linear", ORDER, zeros, zeros + 1, 1.0, 100.0, (Layer(weight, np.zeros(1)),), "0" * 64)


def test_differences_are_told_overall_and_within_tasks() -> None:
    table = synthetic(families=2, tasks=1, variants=4)
    gain = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    first = replace(table, gain=gain, error=np.full(8, 0.075), strategy=np.array(["a", "b"] * 4))
    # Task one: 0.5 slower, and its last one 0.2 more; task two: 0.1 faster, and its last one 0.3 slower than that.
    apart = np.array([0.5, 0.5, 0.5, 0.7, -0.1, -0.1, -0.1, 0.2])
    both = twice(first, replace(first, gain=gain - apart, error=np.full(8, 0.1)))
    found = repeatability(both, RepeatConfig(edges=(3e-6,), fewest=4, listed=1))
    assert (found.variants, found.tasks, found.families) == (8, 2, 2)
    assert found.shift[1] == pytest.approx(0.35)  # between 0.2 and 0.5
    assert found.task_shift == pytest.approx((-0.07, 0.2, 0.47))
    # Within tasks: six times 0, then 0.2 and 0.3; the quantile 0.9 of eight is 0.3 of the way from the 7th to the 8th.
    assert found.within.half == pytest.approx(0)
    assert found.within.nine_tenths == pytest.approx(0.23)
    assert found.within.beyond == 1 / 8  # two standard errors are 2 · √(0.075² + 0.1²) = 0.25
    assert [(s.name, s.variants) for s in found.by_time] == [("under 3 µs", 2), ("from 3 µs", 6)]
    assert found.by_time[0].nine_tenths == pytest.approx(0.18)  # the two of 2.5 and 1.25 µs
    assert [s.name for s in found.by_strategy] == ["b"]
    assert [s.name for s in found.by_task] == ["f01/0"]
    assert [(s.name, s.variants) for s in found.by_family] == [("f01", 4), ("the others", 4)]
    assert found.by_family[1].nine_tenths == pytest.approx(0.14)  # 0, 0, 0 and 0.2
    assert "| family the others | 4 |" in repeat_markdown(found)
    assert "| all | 8 | 0.000 | 0.230 |" in repeat_markdown(found)


def test_pairs_stay_become_ties_or_turn_round() -> None:
    first = [0.0, 1.0, 2.0, 2.1]  # five pairs, and a near tie
    both = hand_made(first, [0.0, 1.0, 1.1, 0.5], families=1, tasks=1)
    found = repeatability(both)
    # 0-1, 0-2, 0-3 stay, 1-2 is a near tie now, 1-3 turned round; 2-3 was one and does not count.
    assert found.pairs == 5
    assert (found.kept, found.tied, found.reversed) == pytest.approx((3 / 5, 1 / 5, 1 / 5))
    assert "Of 5 pairs" in repeat_markdown(found)
    assert repeatability(both, RepeatConfig(MeasureConfig(near_tie=0.05))).pairs == 6


def test_verdicts_that_changed_are_counted_by_task() -> None:
    both = hand_made([0.0, 1.0], [0.0, 1.0])
    change = {"task": "f/0", "strategy": "s", "first": "wrong", "second": "correct", "worst_first": 2.0}
    changed = ({**change, "worst_second": 0.25}, {**change, "worst_first": 1.5, "worst_second": None})
    found = repeatability(replace(both, changed=changed))
    assert found.changed[0]["variants"] == 2
    text = repeat_markdown(found)
    assert "- f/0: 2 from wrong to correct; largest error 2.00, then 0.25 of the budget" in text
    assert "No verdict changed." in repeat_markdown(repeatability(both))


def test_the_ceiling_is_what_one_measurement_says_of_the_other() -> None:
    # Two neighbours of five changed places: ρ = 1 − 6 · 2 / 120, τ = 0.8, nine pairs of ten.
    both = hand_made([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 4.0, 3.0])
    group = ceiling(both, reading(COAL), CONFIG).groups[0]
    rows = {(row.scorer, row.judge): row.measures for row in group.rows}
    top = rows[REPEAT, "second"]
    assert top.tasks == 12
    measured = {name: getattr(top, name).value for name in ("rho", "tau", "accuracy", "regret", "gain_of_choice")}
    expected = {"rho": 0.9, "tau": 0.8, "accuracy": 0.9, "regret": 1, "gain_of_choice": 1}
    assert measured == pytest.approx(expected)  # it chooses 3 where 4 is best and 2 the average
    right, wrong = rows[TRAINED, "second"].rho, rows[TRAINED, "first"].rho
    assert right is not None
    assert wrong is not None
    assert (right.value, wrong.value) == pytest.approx((1, 0.9))
    assert group.change[TRAINED].value == pytest.approx(0.1)
    reach = {name: interval.value for name, interval in group.reach[TRAINED].items()}
    shares = {"rho": 1 / 0.9, "rho_true": 1 / 0.9**0.5, "tau": 1 / 0.8, "accuracy": 0.5 / 0.4, "gain_of_choice": 2}
    assert {name: reach[name] for name in shares} == pytest.approx(shares)
    backwards = ceiling(both, reading(COAL, -1), CONFIG).groups[0].reach[TRAINED]
    assert backwards["rho"].value == pytest.approx(-1 / 0.9)
    assert backwards["accuracy"].value == pytest.approx(-1.25)


def test_what_has_equal_features_cannot_be_told_apart() -> None:
    both = hand_made([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    phi = np.zeros_like(both.first.phi)
    phi[:, COAL] = np.tile([0, 0, 0, 1, 1, 1], 12)  # two kinds of variants, of 1 and of 4 on average
    first = replace(both.first, phi=phi)
    both = replace(both, table=first, first=first, second=replace(both.second, phi=phi))
    group = ceiling(both, reading(COAL), CONFIG).groups[0]
    measured = [row.measures for row in group.rows if row.scorer == SAME_PHI]
    assert len(measured) == 1  # by the second alone
    assert measured[0] == next(r.measures for r in group.rows if (r.scorer, r.judge) == (TRAINED, "second"))
    # Nine of fifteen pairs are of two kinds and right, six are half right: 0.8, which is 0.6 of what is above chance.
    assert group.reach[SAME_PHI]["accuracy"].value == pytest.approx(0.6)
    assert group.reach[SAME_PHI]["gain_of_choice"].value == pytest.approx((4 - 2.5) / (5 - 2.5))
    backwards = ceiling(both, reading(COAL, -1), CONFIG).groups[0].reach
    assert backwards[SAME_PHI]["rho"].value == pytest.approx(-backwards[TRAINED]["rho"].value)


def test_a_score_that_knows_the_true_times_reaches_about_the_root_of_what_a_measurement_does() -> None:
    table, rng = synthetic(families=30, tasks=4, variants=15), np.random.default_rng(3)
    true = rng.normal(0, 1, len(table))
    phi = table.phi.copy()
    phi[:, COAL] = true
    first = replace(table, phi=phi, gain=true + rng.normal(0, 0.6, len(table)))
    both = twice(first, replace(first, gain=true + rng.normal(0, 0.6, len(table))))
    reach = ceiling(both, reading(COAL), CONFIG).groups[0].reach[TRAINED]
    assert reach["rho"].value > 1.1
    assert reach["rho_true"].value == pytest.approx(1, abs=0.03)


def test_what_is_scored_out_of_fold_has_not_seen_the_family() -> None:
    table = synthetic(families=8, tasks=2)
    both = twice(table, table)
    group = ceiling(both, reading(COAL), CONFIG).groups[0]
    assert group.reach[OUT_OF_FOLD]["rho"].value > 0.8
    # One family in which speed goes the other way: what is learned from the others is wrong there, and only there.
    odd = table.family == "f03"
    turned = replace(table, gain=np.where(odd, -table.gain, table.gain))
    alone = replace(twice(turned, turned), rows=np.flatnonzero(odd), first=turned.take(odd), second=turned.take(odd))
    assert ceiling(alone, reading(COAL), CONFIG).groups[0].reach[OUT_OF_FOLD]["rho"].value < -0.8


def test_only_tasks_that_count_in_both_are_judged() -> None:
    both = hand_made([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 4.0, 3.0])
    unseen = np.where(both.first.family == "f00", "gram", both.first.family)
    flat = np.where(both.first.task == "f01/0", 0.0, both.second.gain)
    first = replace(both.first, family=unseen)
    both = replace(both, table=first, first=first, second=replace(both.second, family=unseen, gain=flat))
    found = ceiling(both, reading(COAL), CONFIG)
    tasks = [{row.measures.tasks for row in group.rows} for group in found.groups]
    assert tasks == [{11}, {11}, {2}]
    text = ceiling_markdown(found)
    assert text.count("| the other measurement | second |") == 3
    assert text.count(f"\n| {LOOKUP} |") == 9
    none = replace(both, second=replace(both.second, gain=np.zeros(len(first))))
    with pytest.raises(ConfigError, match="differ in speed in both"):
        ceiling(none, reading(COAL), CONFIG)


def test_the_command_prints_both_and_keeps_the_second(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = synthetic(families=6, tasks=2)
    data = parquet(table, tmp_path / "variants.parquet")
    slice_ = tmp_path / "measured-0.jsonl"
    slice_.write_text(
        "".join(
            json.dumps({"task": t, "variant": str(k), "status": "correct", "samples": [2 ** -float(table.gain[k])]})
            + "\n"
            for k, t in enumerate(table.task)
        )
    )
    kept = tmp_path / "kept.parquet"
    command = ["ranker", "repeat", "--data", str(data), "--folds", "3", "--again"]
    assert main([*command, str(slice_), "--keep", str(kept), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["times"]["variants"] == 120
    rho = {(r["scorer"], r["judge"]): r["measures"]["rho"]["value"] for r in report["groups"][0]["rows"]}
    assert rho[REPEAT, "second"] == pytest.approx(1)
    assert rho[OUT_OF_FOLD, "first"] == rho[OUT_OF_FOLD, "second"] > 0.8
    assert all(len(row["variant"]) <= DIGITS and "samples" not in row for row in read_rows(kept))
    assert main([*command, str(kept)]) == 0
    assert capsys.readouterr().out.startswith("120 variants were measured twice; 120 of 12 tasks and 6 families")
    assert main([*command, str(tmp_path / "none")]) == EXIT_USAGE
    assert "--again" in capsys.readouterr().err
